package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

// The exit codes. They are documented in codesText, and do not change.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitAway        = 4
	exitRefused     = 5
	exitFound       = 6
	exitUnconfirmed = 7
	exitInterrupted = 130
)

const codesText = `  0  It was done.
  1  It failed, for a reason that is none of the others: the text says which.
  2  The command line is wrong: a flag, an argument, a name, a value.
     Nothing was sent.
  3  There is no such queue, job, dead job or schedule.
  4  Redis cannot be reached, does not answer in time, or refuses the login.
  5  Refused: it was not confirmed (see --yes), and nothing was changed; or a
     job or queue is in a state that does not allow it; or some dead jobs
     stayed because other jobs hold their unique keys. Of several jobs the
     others were done.
  6  It was done, and what it found is bad: check or doctor has something to
     report, or a redrive was stopped since its jobs died again.
  7  Not confirmed by Redis: the connection was lost after the command was
     sent, so it may or may not have been done. Look, then call it again.
130  Interrupted by Ctrl-C or SIGTERM. What was done by then was said.

Of a command about several jobs the code is that of the first that failed; the
others were tried all the same. After each code but 0 and 6 one line on
standard error says why.`

// errInterrupted is the cause of a context that Ctrl-C or SIGTERM has ended.
var errInterrupted = errors.New("interrupted")

// failure is an error with an exit code of its own.
type failure struct {
	code int
	err  error // nil if all has been said
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func usagef(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

func notFoundf(format string, args ...any) error {
	return &failure{exitNotFound, fmt.Errorf(format, args...)}
}

func refusedf(format string, args ...any) error {
	return &failure{exitRefused, fmt.Errorf(format, args...)}
}

// found is the end of a command that did what it should, and has bad news.
var found = &failure{code: exitFound}

// exitCode is the code of an error.
func exitCode(err error) int {
	var f *failure
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, pawl.ErrUnconfirmed):
		return exitUnconfirmed
	case errors.Is(err, pawl.ErrNotFound):
		return exitNotFound
	case errors.Is(err, pawl.ErrInvalid):
		return exitUsage
	case errors.Is(err, pawl.ErrState), errors.Is(err, pawl.ErrDuplicate):
		return exitRefused
	case away(err):
		return exitAway
	}
	return exitFailed
}

// errSilent is the cause of a context that the watchdog has ended.
var errSilent = errors.New("no answer")

// errOutput is that the output could not be written.
var errOutput = errors.New("the output could not be written")

// output is where a command writes. A file's error looks like one of the network, and
// must not be taken for one of Redis.
type output struct{ io.Writer }

func (o output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", errOutput, err)
	}
	return n, err
}

// away reports whether an error means that Redis cannot be reached or lets nobody in.
func away(err error) bool {
	var network net.Error
	if errors.Is(err, errOutput) {
		return false
	}
	if errors.As(err, &network) || errors.Is(err, errSilent) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) {
		return true
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	word, _, _ := strings.Cut(reply.Error(), " ")
	switch word {
	case "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOAUTH", "WRONGPASS":
		return true
	}
	return false
}
