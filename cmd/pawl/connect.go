package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/pawlq/pawl"
)

// session is a connection to Redis. It ends with the function of app.with.
type session struct {
	*pawl.Client
	where string        // for people: the address and the namespace
	addr  string        // the address alone
	ahead time.Duration // of the server's clock before the machine's
	clock func() time.Time
	heard *heard
}

// now is the server's time: ages and times of jobs are by its clock.
func (s *session) now() time.Time { return s.clock().Add(s.ahead) }

// noDeadline is far enough away: pawl has its calls last 5 s if a context has no deadline,
// and here the watchdog decides.
const noDeadline = 50 * 365 * 24 * time.Hour

// with connects, calls do, and says in one line what became of Redis if it went away.
func (a *app) with(ctx context.Context, do func(context.Context, *session) error) error {
	rdb, where, err := a.dial()
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	namespace := a.flags.namespace
	if namespace == "" {
		namespace = a.env("PAWL_NAMESPACE")
	}
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace, MaxPayload: largestPayload})
	if err != nil {
		return err
	}
	if namespace == "" {
		namespace = "pawl"
	}
	ctx, cancel := context.WithTimeout(ctx, noDeadline)
	defer cancel()
	ctx, stop := watch(ctx, rdb, a.flags.timeout)
	defer stop()
	s := &session{Client: client, where: fmt.Sprintf("%s, namespace %s", where, namespace), addr: where, clock: a.now, heard: listen(rdb, a.secrets)}
	if s.ahead, err = clock(ctx, rdb, a.now); err == nil {
		return a.lost(ctx, do(ctx, s), where)
	}
	if err := a.lost(ctx, err, where); exitCode(err) == exitAway || errors.Is(err, errInterrupted) {
		return err
	}
	return &failure{exitAway, fmt.Errorf("cannot use Redis at %s: %w", where, err)}
}

// lost names Redis in an error that means that it is away.
func (a *app) lost(ctx context.Context, err error, where string) error {
	var f *failure
	var reply redis.Error
	var network net.Error
	if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && cause != nil { // go-redis does not look for causes
		err = fmt.Errorf("%w: %w", cause, err)
	}
	switch {
	case err == nil, errors.As(err, &f), errors.Is(err, errInterrupted):
		return err
	case errors.Is(err, pawl.ErrUnconfirmed):
		return &failure{exitUnconfirmed, fmt.Errorf("it may or may not have been done, as the connection to Redis at %s was lost: look, and call it again: %w", where, err)}
	case errors.Is(err, errSilent) && errors.As(err, &reply): // to which it was sent again and again
		return &failure{exitAway, fmt.Errorf("cannot use Redis at %s: for %v it answered: %w", where, a.flags.timeout, reply)}
	case errors.Is(err, errSilent), errors.As(err, &network) && network.Timeout():
		return &failure{exitAway, fmt.Errorf("no answer from Redis at %s within %v", where, a.flags.timeout)}
	case !away(err):
		return err
	}
	text := err.Error()
	if strings.Contains(text, "NOAUTH") || strings.Contains(text, "WRONGPASS") {
		return &failure{exitAway, fmt.Errorf("cannot log in to Redis at %s (%w); give the user in the URL, and the password by REDIS_URL, PAWL_REDIS_PASSWORD or --password-file", where, err)}
	}
	return &failure{exitAway, fmt.Errorf("cannot reach Redis at %s: %w", where, err)}
}

// clock asks for the server's time: whether it is there, and how far its clock is ahead.
// It is TIME and not PING, for which a user of docs/security.md has no right.
func clock(ctx context.Context, rdb redis.UniversalClient, now func() time.Time) (ahead time.Duration, err error) {
	type answer struct {
		at  time.Time
		err error
	}
	begun := now()
	done := make(chan answer, 1)
	go func() { // go-redis does not heed a context while it reads
		at, err := rdb.Time(ctx).Result()
		done <- answer{at, err}
	}()
	select {
	case got := <-done:
		return got.at.Sub(begun.Add(now().Sub(begun) / 2)), got.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// dial makes the client that the flags and the environment ask for. It does not connect.
// Where is for people, and never has a user or a password.
func (a *app) dial() (rdb redis.UniversalClient, where string, err error) {
	text, err := a.redisURL()
	if err != nil {
		return nil, "", err
	}
	password, err := a.password()
	if err != nil {
		return nil, "", err
	}
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch {
	case a.flags.cluster:
		o, err := redis.ParseClusterURL(text)
		if u, _ := url.Parse(text); err != nil || strings.Trim(u.Path, "/0") != "" { // there is one database
			return nil, "", badURL(a.urlName())
		}
		a.tune(password, &o.Password, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
		o.DisableIdentity, o.MaintNotificationsConfig, o.DialerRetries = true, quiet, 1
		return redis.NewClusterClient(o), strings.Join(o.Addrs, ","), nil
	case a.flags.sentinel:
		o, err := redis.ParseFailoverURL(text)
		if err != nil {
			return nil, "", badURL(a.urlName())
		}
		if o.MasterName == "" {
			return nil, "", usagef("the URL of a Sentinel needs the name of its master: redis://sentinel:26379/0?master_name=mymaster")
		}
		a.tune(password, &o.Password, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
		a.hide(o.SentinelPassword)
		o.DisableIdentity, o.MaxRetries = true, cmp.Or(o.MaxRetries, 1)
		return redis.NewFailoverClient(o), fmt.Sprintf("%s (by Sentinel %s)", o.MasterName, strings.Join(o.SentinelAddrs, ",")), nil
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, "", badURL(a.urlName())
	}
	a.tune(password, &o.Password, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	o.DisableIdentity, o.MaintNotificationsConfig, o.DialerRetries, o.MaxRetries = true, quiet, 1, cmp.Or(o.MaxRetries, 1)
	return redis.NewClient(o), o.Addr, nil
}

// tune sets what all kinds of clients have, unless the URL has set it: go-redis waits a
// little longer than the watchdog.
func (a *app) tune(password string, of *string, timeouts ...*time.Duration) {
	*of = cmp.Or(password, *of)
	a.hide(*of)
	for _, d := range timeouts {
		*d = cmp.Or(*d, a.flags.timeout+250*time.Millisecond)
	}
}

// urlName says where the URL came from.
func (a *app) urlName() string {
	if a.flags.redis != "" {
		return "--redis"
	}
	return "REDIS_URL"
}

// redisURL is the URL, which has been looked over: no error of it shows any of it, since
// a password in it may have been taken for something else, as one with a "/" or a "#" is.
func (a *app) redisURL() (string, error) {
	text := cmp.Or(a.flags.redis, a.env("REDIS_URL"))
	if text == "" {
		return "", usagef("which Redis? Set REDIS_URL, or give --redis redis://host:6379/0")
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.Contains(u.Path+u.RawQuery, "@") {
		return "", badURL(a.urlName())
	}
	if a.flags.redis == "" {
		return text, nil
	}
	_, has := u.User.Password()
	for name := range u.Query() {
		has = has || strings.Contains(name, "password")
	}
	if has {
		return "", usagef("--redis has a password, which every user of this machine can see, and the shell remembers: give it by REDIS_URL, PAWL_REDIS_PASSWORD or --password-file, and change the one that was shown")
	}
	return text, nil
}

func badURL(name string) error {
	return usagef("%s is no URL of a Redis (it is not shown, since it may have a password): write redis://user@host:6379/0, rediss:// for TLS, or unix:///path/to/socket; options are those of go-redis, and in a password / ? # @ %% are written as %%2F %%3F %%23 %%40 %%25", name)
}

// password is that of the file or the variable; "" leaves that of the URL.
func (a *app) password() (string, error) {
	if a.flags.passwordFile == "" {
		return a.env("PAWL_REDIS_PASSWORD"), nil
	}
	text, err := os.ReadFile(a.flags.passwordFile)
	if err != nil {
		return "", usagef("--password-file: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", usagef("--password-file %s is empty", a.flags.passwordFile)
	}
	return password, nil
}

// hide notes what no output may have.
func (a *app) hide(secrets ...string) {
	for _, secret := range secrets {
		if secret != "" {
			a.secrets = append(a.secrets, secret)
		}
	}
}

// scrub takes the passwords out of what a server or the network said in an error: a server
// or a proxy that does not know AUTH answers with its arguments. The words of this program
// stay: a password may be one of them.
func (a *app) scrub(text string, err error) string {
	for _, said := range foreign(err) {
		text = strings.ReplaceAll(text, said, redact(said, a.secrets))
	}
	return text
}

// foreign are the texts in an error that are neither this program's nor pawl's.
func foreign(err error) (said []string) {
	switch err.(type) {
	case nil:
		return nil
	case redis.Error, net.Error, *url.Error:
		return []string{err.Error()}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return foreign(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			said = append(said, foreign(one)...)
		}
	}
	return said
}

// here are the words of this program for what pawl's errors advise a Go program to call.
var here = strings.NewReplacer(
	": pawl: ", ": ",
	"Dead().Delete removes it", "pawl dead delete removes it",
	"Dead().Redrive sends it back", "pawl dead redrive sends it back",
	"Queue.Get says where a job is", "pawl job says where it is",
	"Purge removes what is kept of such jobs", "pawl purge --state done removes what is kept of such jobs",
)

// plain is the text of an error, without the word that each part of pawl begins its own
// with, and without passwords.
func (a *app) plain(err error) string {
	return strings.TrimPrefix(here.Replace(a.scrub(err.Error(), err)), "pawl: ")
}
