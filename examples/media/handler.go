package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pawlq/pawl"
)

// Transcode makes a video smaller, part by part.
type Transcode struct {
	Video string `json:"video"`
	Parts int    `json:"parts"`
}

func (Transcode) Kind() string { return "video.transcode" }

// JobOptions are short, to end soon. In production a Timeout is a few times what a
// run may take on a bad day, and a wait is seconds to hours: docs/retries.md.
func (Transcode) JobOptions() []pawl.Option {
	return []pawl.Option{
		pawl.Timeout(20 * time.Second),
		pawl.MaxAttempts(2),
		pawl.Backoff{Base: 100 * time.Millisecond},
	}
}

// region media-handler

// transcode can stop after each part, and a later run goes on where it stopped.
func (s *studio) transcode(ctx context.Context, job *pawl.Job[Transcode]) error {
	scratch, err := os.CreateTemp(s.tmp, "part-*")
	if err != nil {
		return err
	}
	defer func() { // whatever ends the run, a panic too
		_ = scratch.Close()
		_ = os.Remove(scratch.Name())
	}()
	key := job.IdempotencyKey() // the same in each run of this job, and no other job's
	for part := s.store.stored(key) + 1; part <= job.Args.Parts; part++ {
		if err := encode(ctx, scratch, job.Args.Video, part); err != nil {
			return s.stopped(ctx, job, fmt.Errorf("part %d of %d: %w", part, job.Args.Parts, err))
		}
		s.store.put(key, part) // twice is once: a run that lost its lease may overlap the next
	}
	return nil
}

// stopped clears up after a run that did not get to its end. It returns err in
// every case: a nil would say that the video is done.
func (s *studio) stopped(ctx context.Context, job *pawl.Job[Transcode], err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, pawl.ErrShutdown):
		// The job goes back, no attempt spent. The next run needs the parts.
	case errors.Is(cause, pawl.ErrLeaseLost):
		// Another run has the job, or soon will. The parts are that run's now.
	case errors.Is(cause, pawl.ErrCancelled):
		s.store.remove(job.IdempotencyKey()) // there will be no other run
	default: // it failed, by itself or by ErrTimeout
		if job.LastAttempt() || pawl.IsPermanent(err) {
			s.store.remove(job.IdempotencyKey()) // dead; a redrive starts anew
		}
	}
	return err
}

// endregion

const (
	partTime = 50 * time.Millisecond
	// broken is a video on which the encoder hangs, at this part.
	broken   = "broken.mov"
	brokenAt = 3
)

// encode stands for a program such as ffmpeg. exec.CommandContext kills one in
// the same way, when its context ends.
func encode(ctx context.Context, scratch io.Writer, video string, part int) error {
	takes := time.After(partTime)
	if video == broken && part == brokenAt {
		takes = nil // a nil channel never receives
	}
	select {
	case <-takes:
		_, err := fmt.Fprintf(scratch, "%s, part %d\n", video, part)
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
