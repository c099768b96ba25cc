package main

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// heard notes what a server says in its errors and has a password in it. pawl's findings have
// such an error as a part of their text, of which nobody can tell any more who said it.
type heard struct {
	secrets []string

	mu   sync.Mutex
	said []string
}

// listen has all that a client is told noted. What is asked of one node of a cluster by
// itself goes past the hooks of the cluster.
func listen(rdb redis.UniversalClient, secrets []string) *heard {
	h := &heard{secrets: secrets}
	rdb.AddHook(h)
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(h) })
	}
	return h
}

func (h *heard) note(err error) {
	for _, text := range foreign(err) {
		if !slices.ContainsFunc(h.secrets, func(secret string) bool { return strings.Contains(text, secret) }) {
			continue
		}
		h.mu.Lock()
		if !slices.Contains(h.said, text) {
			h.said = append(h.said, text)
		}
		h.mu.Unlock()
	}
}

// scrub takes the passwords out of what was noted, wherever it is in a text.
func (h *heard) scrub(text string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, said := range h.said {
		text = strings.ReplaceAll(text, said, redact(said, h.secrets))
	}
	return text
}

// redact is a text without secrets.
func redact(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// DialHook is one of redis.Hook.
func (h *heard) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook is one of redis.Hook.
func (h *heard) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.note(err)
		return err
	}
}

// ProcessPipelineHook is one of redis.Hook.
func (h *heard) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		h.note(err)
		for _, cmd := range cmds {
			h.note(cmd.Err())
		}
		return err
	}
}
