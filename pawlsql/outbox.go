package pawlsql

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/pawlq/pawl"
)

// Outbox writes jobs into a table, inside your transaction: a job is enqueued if
// and only if that commits, however Redis fares meanwhile. A Relay moves the rows to
// their queues. Its table comes from Schema.
//
// It is immutable and safe for concurrent use, by any number of processes.
type Outbox struct {
	dialect Dialect
	table   string
	bare    string
	config  pawl.Config
}

// OutboxConfig is an outbox. Dialect must be set. Codec, MaxPayload and Inject are
// those of the pawl.Config of the client that its Relay is given.
type OutboxConfig struct {
	Dialect Dialect
	// Table is the table's name, with a schema before it where there is one on
	// PostgreSQL or MySQL. Default "pawl_outbox". It goes into SQL unquoted: letters,
	// digits and underscores.
	Table string
	// Codec turns arguments into bytes. Default JSON.
	Codec pawl.Codec
	// MaxPayload is the largest encoded payload, in bytes. Default 256 KiB.
	MaxPayload int
	// Inject fills the headers of a new job from the context of the Enqueue, which a
	// Relay does not have: trace context, tenant, request id.
	Inject func(ctx context.Context, h pawl.Headers)
}

// NewOutbox validates cfg. It does not talk to the database. Its error wraps
// pawl.ErrInvalid.
func NewOutbox(cfg OutboxConfig) (*Outbox, error) {
	err := cfg.Dialect.check()
	if err != nil {
		return nil, fmt.Errorf("pawlsql: outbox: %w", err)
	}
	o := &Outbox{dialect: cfg.Dialect, config: pawl.Config{Codec: cfg.Codec, MaxPayload: cfg.MaxPayload}}
	if o.table, o.bare, err = tableName(cfg.Dialect, cfg.Table, "pawl_outbox"); err != nil {
		return nil, fmt.Errorf("pawlsql: outbox: %w", err)
	}
	if _, _, err = o.config.Prepare(context.Background(), "q", pawl.Raw{Name: "kind"}); err != nil {
		return nil, fmt.Errorf("pawlsql: outbox: %w", err)
	}
	o.config.Inject = cfg.Inject
	return o, nil
}

// The bounds of one INSERT.
const (
	maxInsertRows  = 500
	maxInsertBytes = 1 << 20
)

// Enqueue writes the job into tx, with one INSERT. It takes the arguments and
// options of pawl's own Enqueue, those of the type (JobOptions) included, with the
// same precedence. The key it returns is the job's idempotency key for good; the
// job's id is given when a Relay enqueues it.
//
// Delay and ExpireIn count from the INSERT, by the database's clock. A Unique needs
// For, of 24 h or more: it then also keeps a relay that crashed from adding the job
// a second time, as the key that the relay else gives each job does. RejectDuplicate
// is refused, since nobody will be there to be told. If the unique key is held when
// the row is relayed, no job is added, and none has the key that was returned.
//
// Errors: pawl.ErrInvalid, pawl.ErrName or pawl.ErrTooLarge, and no SQL was run;
// else the database's own, and tx should be rolled back.
func (o *Outbox) Enqueue(ctx context.Context, tx Execer, queue string, args pawl.Args, opts ...pawl.Option) (key string, err error) {
	keys, err := o.EnqueueMany(ctx, tx, queue, []pawl.Item{{Args: args, Options: opts}})
	if err != nil {
		return "", err
	}
	return keys[0], nil
}

// EnqueueMany is Enqueue of many, in INSERTs of up to 500 jobs and a megabyte. The
// keys are by index. All items are checked before any SQL is run; after an error of
// the database, some INSERTs may have been made: roll tx back. No items are no
// INSERT, and no error.
func (o *Outbox) EnqueueMany(ctx context.Context, tx Execer, queue string, items []pawl.Item) (keys []string, err error) {
	if o == nil || o.dialect == 0 {
		return nil, fmt.Errorf("pawlsql: outbox: %w", invalidf("the Outbox is not made by NewOutbox"))
	}
	if err := checkExecer(tx); err != nil {
		return nil, fmt.Errorf("pawlsql: outbox: %w", err)
	}
	rows := make([]row, len(items))
	for i, it := range items {
		if rows[i], err = o.draft(ctx, queue, it); err != nil {
			return nil, fmt.Errorf("pawlsql: outbox: item %d of %d: %w", i, len(items), err)
		}
		keys = append(keys, rows[i].idempotencyKey())
	}
	for len(rows) > 0 {
		n, size := 1, rows[0].size()
		for n < len(rows) && n < maxInsertRows && size+rows[n].size() <= maxInsertBytes {
			size += rows[n].size()
			n++
		}
		if err := o.insert(ctx, tx, rows[:n]); err != nil {
			return nil, fmt.Errorf("pawlsql: outbox: insert: %w", err)
		}
		rows = rows[n:]
	}
	return keys, nil
}

func (o *Outbox) draft(ctx context.Context, queue string, it pawl.Item) (row, error) {
	raw, opts, err := o.config.Prepare(ctx, queue, it.Args, it.Options...)
	if err != nil {
		return row{}, err
	}
	s, err := store(opts)
	if err != nil {
		return row{}, err
	}
	text, err := s.encode()
	if err != nil {
		return row{}, err
	}
	key, err := uuid.NewV7()
	if err != nil {
		return row{}, err
	}
	// A nil payload would be NULL.
	return row{key: key.String(), queue: queue, kind: raw.Name, payload: append([]byte{}, raw.Payload...), options: text, stored: s}, nil
}

func (o *Outbox) insert(ctx context.Context, tx Execer, rows []row) error {
	var b strings.Builder
	b.WriteString("INSERT INTO " + o.table + " (job_key, queue, kind, payload, options, created_at) VALUES ")
	args := make([]any, 0, 5*len(rows))
	for i, r := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(?, ?, ?, ?, ?, " + o.dialect.now() + ")")
		args = append(args, r.key, r.queue, r.kind, r.payload, r.options)
	}
	_, err := tx.Exec(ctx, o.dialect.bind(b.String()), args...)
	return err
}
