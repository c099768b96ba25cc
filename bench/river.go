package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

// riverBatch is what one COPY of River takes in.
const riverBatch = 1000

// poolSize is of the connections to PostgreSQL of one process.
const poolSize = 64

func riverSystem() *system {
	var cluster *postgres
	return &system{
		name: "river",
		settings: "FetchCooldown 1 ms (default 100), FetchPollInterval 100 ms (default 1,000), 64 connections; bulk: 4 callers of InsertManyFast (COPY) with 1,000 jobs each; " +
			"PostgreSQL with " + postgresSettings,
		slow: true,
		can:  []need{needsBulk, needsQueue},
		prepare: func(ctx context.Context, dir string) (func(), error) {
			var err error
			if cluster, err = startPostgres(ctx, dir); err != nil {
				return nil, err
			}
			return cluster.stop, nil
		},
		versions: func() map[string]string {
			return map[string]string{
				"river": moduleVersion("github.com/riverqueue/river"), "pgx": moduleVersion("github.com/jackc/pgx/v5"),
				"PostgreSQL": cluster.version,
			}
		},
		store: func(ctx context.Context, _ ...string) (*store, error) { return riverStore(ctx, cluster) },
		open: func(ctx context.Context, at address) (session, error) {
			pool, err := openPool(ctx, at.Postgres)
			if err != nil {
				return nil, err
			}
			// Without workers, for it enqueues only.
			client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
			return &riverSession{pool: pool, client: client}, err
		},
		spawn: spawnSelf("river"),
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func openPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = poolSize
	return pgxpool.NewWithConfig(ctx, cfg)
}

// riverStore is a database with River's tables.
func riverStore(ctx context.Context, cluster *postgres) (*store, error) {
	url, drop, err := cluster.database(ctx)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(ctx, url)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	return &store{at: address{Postgres: url}, close: drop}, nil
}

type riverSession struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

func (s *riverSession) enqueue(ctx context.Context, l load) error {
	options := func(due int64) *river.InsertOpts {
		o := &river.InsertOpts{Queue: queueName}
		if due != 0 {
			o.ScheduledAt = time.UnixMicro(due)
		}
		return o
	}
	return l.send(ctx, sender{
		one: func(ctx context.Context, p parcel, due int64) error {
			_, err := s.client.Insert(ctx, p, options(due))
			return err
		},
		many: func(ctx context.Context, ps []parcel, due int64) error {
			all := make([]river.InsertManyParams, len(ps))
			for i, p := range ps {
				all[i] = river.InsertManyParams{Args: p, InsertOpts: options(due)}
			}
			_, err := s.client.InsertManyFast(ctx, all)
			return err
		},
		batch: riverBatch,
	})
}

type fixedRetry struct{}

func (fixedRetry) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(retryAfter) }

func (s *riverSession) work(ctx context.Context, w work) (worker, error) {
	t := newTally(w)
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[parcel]) error { return t.run(job.Args) }))
	client, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Queues:            map[string]river.QueueConfig{queueName: {MaxWorkers: w.Slots}},
		Workers:           workers,
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: 100 * time.Millisecond,
		RetryPolicy:       fixedRetry{},
		Logger:            quiet,
	})
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return &local{t, client.Stop}, nil
}

func (s *riverSession) state(ctx context.Context) (state, error) {
	var st state
	err := s.pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state <> 'completed') FROM river_job`).
		Scan(&st.Done, &st.Left)
	if errors.Is(err, context.Canceled) {
		err = context.Cause(ctx)
	}
	return st, err
}

func (s *riverSession) close(context.Context) error {
	s.pool.Close()
	return nil
}
