package pawlsql_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
)

// Charge is the job of paying for an order.
type Charge struct {
	Order int `json:"order"`
}

func (Charge) Kind() string { return "charge" }

// An order and the job of charging for it are in one transaction. The relay runs
// wherever there are a database and Redis, and is told of the commit.
func ExampleOutbox() {
	ctx, stop := context.WithCancel(context.Background())
	db, client := exampleDB(), exampleClient()
	outbox := must(pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: pawlsql.SQLite}))
	must(db.Exec(outbox.Schema())) // by your migration tool
	relay := must(outbox.NewRelay(db, client, pawlsql.RelayConfig{Logger: slog.Default()}))
	stopped := make(chan error)
	go func() { stopped <- relay.Run(ctx) }()

	// region outbox
	place := func(order int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES (?)", order); err != nil {
			return err
		}
		if _, err := outbox.Enqueue(ctx, pawlsql.Std(tx), "payments", Charge{Order: order}, pawl.Priority(5)); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		relay.Wake()
		return nil
	}
	// endregion
	fmt.Println(place(7))
	fmt.Println(place(7)) // there is such an order: no job

	waitUntil(func() bool { return must(relay.Stats(ctx)).Pending == 0 })
	fmt.Println(must(client.Queue("payments").Stats(ctx)).Ready, "job")
	stop()
	fmt.Println(<-stopped)
	// Output:
	// <nil>
	// sqlite3: constraint failed: UNIQUE constraint failed: orders.id
	// 1 job
	// <nil>
}

// Many jobs take few INSERTs.
func ExampleOutbox_EnqueueMany() {
	ctx, db := context.Background(), exampleDB()
	outbox := must(pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: pawlsql.SQLite}))
	must(db.Exec(outbox.Schema()))

	tx := must(db.Begin())
	keys, err := outbox.EnqueueMany(ctx, pawlsql.Std(tx), "payments", pawl.Items([]Charge{{1}, {2}, {3}}, pawl.Delay(time.Hour)))
	fmt.Println(len(keys), err, tx.Commit())
	// Output: 3 <nil> <nil>
}

// What could not be enqueued is kept until it is mended.
func ExampleRelay_Retry() {
	ctx, db := context.Background(), exampleDB()
	outbox := must(pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: pawlsql.SQLite}))
	must(db.Exec(outbox.Schema()))
	relay := must(outbox.NewRelay(db, exampleClient(), pawlsql.RelayConfig{}))

	stats := must(relay.Stats(ctx))
	fmt.Println(stats.Pending, stats.Failed, stats.Oldest)
	fmt.Println(relay.Retry(ctx))
	// Output:
	// 0 0 0s
	// 0 <nil>
}

// However often the job runs, the account is debited once.
func ExampleInbox_Do() {
	ctx, db := context.Background(), exampleDB()
	inbox := must(pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: pawlsql.SQLite}))
	must(db.Exec(inbox.Schema())) // by your migration tool

	// region inbox
	handler := func(ctx context.Context, job *pawl.Job[Charge]) error {
		done, err := inbox.Do(ctx, db, job, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - 10")
			return err
		})
		fmt.Println(done, err) // false: it was done before
		return err
	}
	// endregion
	job := &pawl.Job[Charge]{RawJob: pawl.RawJob{Kind: "charge", ID: pawl.ID{7}}, Args: Charge{Order: 7}}
	for range 2 {
		_ = handler(ctx, job)
	}
	var balance int
	fmt.Println(db.QueryRow("SELECT balance FROM accounts").Scan(&balance), balance)
	fmt.Println(inbox.Prune(ctx, db, 0)) // once a day or so
	// Output:
	// true <nil>
	// false <nil>
	// <nil> 90
	// 0 <nil>
}

// The second run has the answer of the first.
func ExampleDoResult() {
	ctx, db := context.Background(), exampleDB()
	inbox := must(pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: pawlsql.SQLite, Consumer: "receipts"}))
	must(db.Exec(inbox.Schema()))

	message := pawlsql.Key(pawl.Key("order", 7)) // of any system: a webhook's id, a topic's offset
	for _, number := range []int{1001, 1002} {
		receipt, done, err := pawlsql.DoResult(ctx, inbox, db, message, func(context.Context, *sql.Tx) (int, error) {
			return number, nil
		})
		fmt.Println(receipt, done, err)
	}
	entry := must(inbox.Get(ctx, db, message))
	fmt.Println(string(entry.Result), time.Since(entry.ProcessedAt) < time.Minute)
	// Output:
	// 1001 true <nil>
	// 1001 false <nil>
	// 1001 true
}

// With pgx, and any transaction of your own.
func ExampleInbox_Claim() {
	inbox := must(pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: pawlsql.Postgres}))
	_ = func(ctx context.Context, conn *pgx.Conn, job *pawl.Job[Charge]) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			fresh, err := inbox.Claim(ctx, pawlsql.PGX(tx), job)
			if err != nil || !fresh {
				return err
			}
			_, err = tx.Exec(ctx, "UPDATE accounts SET balance = balance - 10")
			return err
		})
	}
}

func exampleDB() *sql.DB {
	db := must(sql.Open("sqlite3", ":memory:"))
	db.SetMaxOpenConns(1) // each connection would have a memory of its own
	must(db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY); CREATE TABLE accounts (balance INTEGER); INSERT INTO accounts VALUES (100)"))
	return db
}

func exampleClient() *pawl.Client {
	return must(pawl.New(redis.NewClient(&redis.Options{Addr: must(miniredis.Run()).Addr()}), pawl.Config{}))
}

func waitUntil(ok func() bool) {
	for tick := time.NewTicker(time.Millisecond); !ok(); {
		<-tick.C
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
