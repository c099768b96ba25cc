// Media is a studio whose jobs are long: transcoding a video takes longer than
// a worker may be silent, is cancelled, hangs, and is cut short by a deploy.
//
//	go run ./examples/media
//
// It needs nothing but Go, and takes about 7 s. With REDIS_URL set it uses that
// Redis instead of one of its own, in a namespace that it removes at the end.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

const (
	// visibility is how long a worker that says nothing keeps its jobs: 1 s, to
	// be outlived soon. The default is 30 s.
	visibility = time.Second
	// drain is how long running jobs may finish at a shutdown. The default is 25 s.
	drain = time.Second
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl media:", err)
		os.Exit(1)
	}
	fmt.Println("pawl media: ok")
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()

	rdb, namespace, cleanup, err := exampleredis.Open(ctx)
	if err != nil {
		return err
	}
	defer cleanup()
	tmp, err := os.MkdirTemp("", "pawl-media-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	journal := newJournal()
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace, Hooks: []pawl.Hook{journal}})
	if err != nil {
		return err
	}
	s := &studio{client: client, queue: client.Queue("media"), journal: journal, tmp: tmp,
		store: &store{journal: journal, parts: map[string]map[int]bool{}}}
	if err := s.tell(ctx); err != nil {
		return err
	}
	fmt.Println()
	return nil
}

// tell runs the story: one worker for most of it, a second at the end.
func (s *studio) tell(ctx context.Context) error {
	first, err := s.start(ctx, "media-1")
	if err != nil {
		return err
	}
	defer func() { _ = first.stop() }()
	for _, chapter := range []func(context.Context) error{s.long, s.hung, s.unwanted} {
		fmt.Println()
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	fmt.Println()
	if err := s.deploy(ctx, first); err != nil {
		return err
	}
	fmt.Println()
	return s.count(ctx)
}
