package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is what one server says of itself.
type node struct {
	addr   string            // "" if it is the only one
	fields map[string]string // INFO, CONFIG and CLUSTER INFO by their own names, which do not meet
	// infoNo, configNo and clusterNo are why the server did not answer; nil if
	// it did.
	infoNo, configNo, clusterNo error
	clusterClient               bool
	lost                        error // it could not be reached, but others were
}

// configs are the settings that INFO does not tell, and those that help where
// it is forbidden.
var configs = []string{"appendfsync", "min-replicas-to-write", "maxmemory-policy", "maxmemory", "appendonly"}

// examine asks the server, or each master of a cluster.
func (c *Client) examine(ctx context.Context) ([]node, error) {
	if servers, ok := c.rdb.(cluster); ok {
		return examineEach(ctx, servers)
	}
	n, err := examineOne(ctx, c.rdb, node{})
	return []node{n}, err
}

func examineEach(ctx context.Context, c cluster) ([]node, error) {
	servers, err := await(ctx, nil, func(ctx context.Context) (found []*redis.Client, _ error) {
		var mu sync.Mutex
		err := c.ForEachMaster(ctx, func(_ context.Context, rdb *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, rdb)
			return nil
		})
		return found, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(servers, func(a, b *redis.Client) int { return strings.Compare(a.Options().Addr, b.Options().Addr) })
	ctx, cancel := mostOf(ctx)
	defer cancel()
	nodes, errs := make([]node, len(servers)), make([]error, len(servers))
	var wg sync.WaitGroup
	for i, rdb := range servers {
		wg.Go(func() {
			n := node{addr: rdb.Options().Addr, clusterClient: true}
			nodes[i], errs[i] = examineOne(ctx, rdb, n)
			nodes[i].lost = errs[i]
		})
	}
	wg.Wait()
	if !slices.Contains(errs, nil) {
		return nil, errors.Join(append(errs, context.Cause(ctx))...)
	}
	return nodes, nil
}

// mostOf leaves a quarter of the time, so that a part that does not answer can
// still be reported.
func mostOf(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)*3/4)
}

func examineOne(ctx context.Context, rdb redis.Cmdable, n node) (node, error) {
	n.fields = map[string]string{}
	info, no, err := consult(ctx, func(ctx context.Context) (string, error) { return rdb.Info(ctx).Result() })
	if err != nil {
		return n, err
	}
	n.infoNo = no
	n.read(info)
	var settings map[string]string
	settings, n.configNo, err = consult(ctx, func(ctx context.Context) (map[string]string, error) { return getConfigs(ctx, rdb) })
	if err != nil {
		return n, err
	}
	for name, value := range settings {
		if _, told := n.fields[name]; !told {
			n.fields[name] = value
		}
	}
	if !n.clusterClient {
		return n, nil
	}
	info, n.clusterNo, err = consult(ctx, func(ctx context.Context) (string, error) { return rdb.ClusterInfo(ctx).Result() })
	n.read(info)
	return n, err
}

func getConfigs(ctx context.Context, rdb redis.Cmdable) (map[string]string, error) {
	pipe := rdb.Pipeline() // of single names: several in one call need Redis 7
	cmds := make([]*redis.MapStringStringCmd, len(configs))
	for i, name := range configs {
		cmds[i] = pipe.ConfigGet(ctx, name)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for i, name := range configs {
		if value, ok := cmds[i].Val()[name]; ok {
			settings[name] = value
		}
	}
	return settings, nil
}

// read takes the "name:value" lines of INFO.
func (n *node) read(info string) {
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			n.fields[name] = value
		}
	}
}

// consult is await of a question that the server may refuse to answer: that is
// what is found then, and no failure.
func consult[T any](ctx context.Context, fn func(context.Context) (T, error)) (value T, no, err error) {
	type answer struct {
		value T
		no    error
	}
	a, err := await(ctx, nil, func(ctx context.Context) (answer, error) {
		v, err := fn(ctx)
		if isRefusal(err) {
			return answer{no: err}, nil
		}
		return answer{value: v}, explain(err)
	})
	return a.value, a.no, err
}

// isRefusal reports whether err is the server's answer to the command. A server
// that is busy may answer yet, and one that does not know who asks was not
// reached.
func isRefusal(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) || errors.Is(err, redis.Nil) {
		return false
	}
	text := reply.Error()
	switch word, _, _ := strings.Cut(text, " "); word {
	case "LOADING", "BUSY", "NOAUTH", "WRONGPASS":
		return false
	}
	return !strings.HasPrefix(text, "ERR max number of clients") && !strings.Contains(text, unauthenticated)
}

// overNodes is one finding for all nodes: the worst, with the nodes it is of.
func overNodes(nodes []node, look func(*node) Finding) Finding {
	var bad, unknown, fine []string
	for i := range nodes {
		n := &nodes[i]
		f := look(n)
		text := f.Text
		if n.addr != "" && !f.OK {
			text = n.addr + ": " + text
		}
		switch {
		case f.Unknown:
			unknown = append(unknown, text)
		case !f.OK:
			bad = append(bad, text)
		case !slices.Contains(fine, text):
			fine = append(fine, text)
		}
	}
	switch {
	case len(bad) > 0:
		return wrong("%s", strings.Join(bad, "; "))
	case len(unknown) > 0:
		return notKnown("%s", strings.Join(unknown, "; "))
	}
	return good("%s", strings.Join(fine, "; "))
}

func good(format string, args ...any) Finding {
	return Finding{OK: true, Text: fmt.Sprintf(format, args...)}
}

func wrong(format string, args ...any) Finding { return Finding{Text: fmt.Sprintf(format, args...)} }

func notKnown(format string, args ...any) Finding {
	return Finding{Unknown: true, Text: fmt.Sprintf(format, args...)}
}
