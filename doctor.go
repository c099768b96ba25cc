package pawl

import (
	"context"
	"fmt"
	"log/slog"
)

// Finding is one thing Doctor saw. One that is neither OK nor Unknown would
// hurt in production; so would the zero Finding, which Doctor never returns.
type Finding struct {
	Check   string // what was looked at, such as "maxmemory-policy"
	OK      bool
	Unknown bool   // it could not be looked at: the server's ACL forbids it, or it does not know the command
	Text    string // what was found, and what to set instead
}

// String is one line, such as "bad      appendonly: there is no AOF: …".
func (f Finding) String() string {
	word := "bad"
	switch {
	case f.Unknown:
		word = "unknown"
	case f.OK:
		word = "ok"
	}
	return fmt.Sprintf("%-8s %s: %s", word, f.Check, f.Text)
}

// Doctor looks at the server and says what would hurt in production: an
// eviction policy that drops keys, no AOF, a replica, a version too old, a pool
// smaller than the workers need. A check that the server's ACL forbids is
// reported as unknown, never as OK.
//
// Every check is reported, OK or not, each once and always in this order:
// version, role, cluster, maxmemory-policy, maxmemory, appendonly, appendfsync,
// disk, min-replicas, pool, rights. Of a redis.ClusterClient every master is
// looked at, and the text names those that are meant. The server's manual
// explains the settings in "Redis administration", "Key eviction", "Redis
// persistence", "Redis replication" and "ACL".
//
// Doctor fails only if the server cannot be reached or ctx ends, and waits no
// longer than ctx, or 5 s if it has no deadline. It sends INFO, a few CONFIG
// GET, to a cluster CLUSTER INFO, three scripts that cannot write and a BLPOP of
// a key that nobody makes: six or seven round trips, one after the other, of
// which each master of a cluster gets the first ones. A command that the user
// may not run leaves a line in the server's ACL LOG. It changes nothing, and may
// be called at any time, by several goroutines at once.
//
// A worker whose Config.Logger takes warnings asks too when it starts, once for
// each Client and of the rights those that workers need, and logs what would
// hurt.
func (c *Client) Doctor(ctx context.Context) ([]Finding, error) {
	if c == nil || c.rdb == nil {
		return nil, fmt.Errorf("pawl: doctor: %w", invalidf("the client is nil: make one with New"))
	}
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	findings, err := c.look(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("pawl: doctor: %w", err)
	}
	return findings, nil
}

// look is Doctor, with all rights or only those of a worker.
func (c *Client) look(ctx context.Context, all bool) ([]Finding, error) {
	nodes, err := c.examine(ctx)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, check := range checks {
		f := overNodes(nodes, check.look)
		f.Check = check.name
		findings = append(findings, f)
	}
	findings = append(findings, poolFinding(c.rdb), c.rights(ctx, all))
	return findings, context.Cause(ctx)
}

// askDoctor has the first worker of a client warn of what would hurt, beside
// its work. The function it returns ends that. There is one try: if the server
// is away it stays with that, until another worker starts.
func (w *Worker) askDoctor(ctx context.Context) (stop func()) {
	c := w.client
	if !c.log.Enabled(ctx, slog.LevelWarn) || c.examined.Swap(true) {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		findings, err := c.look(ctx, false)
		if err != nil {
			c.examined.Store(false)
		}
		var unknown []string
		for _, f := range findings {
			switch {
			case f.Unknown:
				unknown = append(unknown, f.Check)
			case !f.OK:
				c.log.Warn("pawl: the server's settings would hurt", "check", f.Check, "text", f.Text)
			}
		}
		if len(unknown) > 0 && err == nil {
			c.log.Info("pawl: these settings of the server could not be looked at; a user who may run INFO and CONFIG GET can ask Client.Doctor", "checks", unknown)
		}
	}()
	return func() {
		cancel()
		within(ended, drainGrace) // a logger that blocks must not keep Run
	}
}
