package pawl

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config holds what the producers and the workers of one program must agree
// on. It is given once, to New: a queue that encodes and a worker that decodes
// cannot then disagree. The zero Config is good.
type Config struct {
	// Namespace is the first part of every key: 1 to 128 letters, digits, '.',
	// '_', '-' or ':'. Default "pawl". Two programs or two environments that
	// share one Redis use two namespaces. It is not a security boundary.
	Namespace string
	// Codec turns arguments into bytes. Default JSON.
	Codec Codec
	// Logger receives what an operator must know. Default: discard.
	Logger *slog.Logger
	// Hooks observe; see Hook. Each must have at least one of the On… methods.
	Hooks []Hook
	// Inject fills the headers of a new job from the caller's context: trace
	// context, tenant, request id. It is the producer's half of middleware. A
	// header that the call gives wins over one from Inject.
	Inject func(ctx context.Context, h Headers)
	// MaxPayload is the largest encoded payload, in bytes. Default 256 KiB, at
	// most 16 MiB. Larger things belong in a blob store, their key in the job.
	MaxPayload int
	// DeadRetention is how long a dead job is kept, by the server's clock. Default
	// 30 days; Forever keeps it until it is redriven or deleted. The workers of a
	// queue drop what is older, once a minute; each is counted (Counters.Dropped),
	// logged and told to OnDropped, never silent. Where workers are given different
	// times the shortest decides.
	DeadRetention time.Duration
}

const (
	defaultNamespace  = "pawl"
	defaultMaxPayload = 256 << 10
	limitMaxPayload   = 16 << 20
	defaultRetention  = 30 * 24 * time.Hour
)

// Client is the one handle of a program: queues and workers are made from it.
// It is safe for concurrent use, needs no Close, and never dials, configures or
// closes the Redis client it is given.
type Client struct {
	rdb       redis.UniversalClient
	namespace string
	codec     Codec
	log       *slog.Logger
	hooks     hooks
	inject    func(context.Context, Headers)
	max       int
	retention time.Duration

	ear      ear         // for those who wait for jobs
	queues   sync.Map    // name -> *queueState
	examined atomic.Bool // a worker has asked Doctor, or is about to
}

// New validates cfg and makes a Client. It does not talk to Redis. Its error
// wraps ErrInvalid. It takes a redis.Client, of Sentinel too, a redis.ClusterClient,
// or a type of your own that embeds one of them; it refuses a redis.Ring.
func New(rdb redis.UniversalClient, cfg Config) (*Client, error) {
	if rdb == nil || reflect.ValueOf(rdb).Kind() == reflect.Pointer && reflect.ValueOf(rdb).IsNil() {
		return nil, invalidf("New: the Redis client is nil; make one with redis.NewClient")
	}
	if err := checkServers(rdb); err != nil {
		return nil, err
	}
	return newClient(rdb, cfg)
}

// newClient is New without a look at rdb, which may be nil for what needs no Redis.
func newClient(rdb redis.UniversalClient, cfg Config) (*Client, error) {
	c := &Client{rdb: rdb, namespace: cfg.Namespace, codec: cfg.Codec, log: cfg.Logger, inject: cfg.Inject,
		max: cfg.MaxPayload, retention: cfg.DeadRetention}
	if c.namespace == "" {
		c.namespace = defaultNamespace
	}
	if says := wrongName(c.namespace); says != "" {
		return nil, invalidf("Config.Namespace %s", says)
	}
	if c.codec == nil {
		c.codec = jsonCodec{}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.max == 0 {
		c.max = defaultMaxPayload
	}
	if c.max < 0 || c.max > limitMaxPayload {
		return nil, invalidf("Config.MaxPayload %d: give 1 to %d bytes, or 0 for %d", cfg.MaxPayload, limitMaxPayload, defaultMaxPayload)
	}
	if c.retention == 0 {
		c.retention = defaultRetention
	}
	if c.retention < 0 && c.retention != Forever || c.retention > maxWait {
		return nil, invalidf("Config.DeadRetention %v: give a time of at most 100 years, Forever, or 0 for 30 days", cfg.DeadRetention)
	}
	c.ear.client = c
	var err error
	c.hooks, err = newHooks(cfg.Hooks, c.log)
	return c, err
}

// Queue names a queue. It does no I/O: a queue exists from its first job.
// If name is not valid, every method of the Queue returns ErrName.
func (c *Client) Queue(name string) *Queue {
	return &Queue{c.queue(name)}
}

func (c *Client) queue(name string) *queueState {
	if c == nil || c.rdb == nil {
		return &queueState{name: name, err: invalidf("the client is nil: make one with New; that of a RawJob literal is nil")}
	}
	if q, ok := c.queues.Load(name); ok {
		return q.(*queueState)
	}
	q := &queueState{client: c, name: name, keys: newKeyspace(c.namespace, name)}
	if err := checkName(name); err != nil {
		q.err = err
		return q // not kept: a stream of bad names must not fill the map
	}
	q.lanes.keys = &q.keys
	q.batch.q, q.lobby.q = q, q
	kept, _ := c.queues.LoadOrStore(name, q)
	return kept.(*queueState)
}

// queueState is what the handles of one queue share.
type queueState struct {
	client *Client
	name   string
	keys   keyspace
	err    error // of the name
	lanes  lanePool
	batch  batcher
	lobby  lobby

	tickMu   sync.Mutex
	tickings map[*ticking]bool // of running workers

	listAt atomic.Int64 // when to put it on the list of queues again, unix ms; see enlist
}

// wrap names the operation and the queue, and keeps the cause for errors.Is.
func (q *queueState) wrap(verb string, err error) error {
	if err == nil {
		return nil
	}
	if q.err == nil { // whose text names the queue, quoted
		verb += " " + q.name
	}
	return &placed{"pawl: " + verb, err}
}
