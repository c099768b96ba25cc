package main

import (
	"context"
	"net"
	"regexp"
	"slices"
	"strconv"
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
		if redact(text, h.secrets) == text {
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

// redact is a text without secrets. A reply that go-redis could not read is in quotes, with
// escapes, and cut after 100 bytes: a part of a password may be its end. So its first word
// is all that is kept, which tells an HTTP server from another.
func redact(text string, secrets []string) string {
	if len(secrets) == 0 {
		return text
	}
	if strings.HasPrefix(text, unread) {
		text = quoted.ReplaceAllStringFunc(text, func(reply string) string {
			raw, err := strconv.Unquote(reply)
			if err != nil {
				return `"…"`
			}
			word, _, more := strings.Cut(raw, " ")
			for _, secret := range secrets {
				if prefix, _, _ := strings.Cut(secret, " "); more && strings.Contains(word, prefix) {
					return `"…"` // the password has a space
				}
				word = strings.ReplaceAll(word, secret, "***")
			}
			if len(word) > longestWord {
				return `"…"`
			}
			if more {
				word += " …"
			}
			return strconv.Quote(word)
		})
	}
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

const (
	unread      = "redis: " // what go-redis's own errors begin with
	longestWord = 20        // of a reply that could not be read
)

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

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
