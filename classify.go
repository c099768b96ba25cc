package pawl

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// class says what an error of one attempt tells about the call.
type class int

const (
	classAnswered class = iota // the script ran, and this is its answer
	classRefused               // nothing was done; the same call may be sent again
	classUnknown               // it may have run; only its lane can tell
	classFull                  // Redis has no memory: nothing was done
	classDenied                // no right to do it: nothing was done, if not midway
	classNoScript              // the script is not cached: send its text
	classBroken                // it can never work: a wrong type, a bad script
)

// Redis names an error by its first word; what follows differs between Redis
// and Valkey and between versions.
var classOfWord = map[string]class{
	"LOADING": classRefused, "READONLY": classRefused, "MASTERDOWN": classRefused,
	"CLUSTERDOWN": classRefused, "TRYAGAIN": classRefused, "MOVED": classRefused,
	"ASK": classRefused, "NOREPLICAS": classRefused, "MISCONF": classRefused, "BUSY": classRefused,
	"NOSCRIPT": classNoScript, "OOM": classFull, "WRONGTYPE": classBroken,
	"NOAUTH": classDenied, "WRONGPASS": classDenied, "NOPERM": classDenied,
}

// unauthenticated is in what Redis answers, instead of NOAUTH, to a command of
// many words on a connection that gave no password.
const unauthenticated = "unauthenticated"

// explain puts a word before an error that would not be understood.
func explain(err error) error {
	var reply redis.Error
	if errors.As(err, &reply) && strings.Contains(reply.Error(), unauthenticated) {
		return fmt.Errorf("NOAUTH: the server wants a password, and its client has none: %w", err)
	}
	return err
}

func classify(err error) class {
	if err == nil || errors.Is(err, redis.Nil) {
		return classAnswered
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		return classifyReply(reply.Error())
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return classRefused // no connection, so nothing was sent
	case errors.Is(err, redis.ErrClosed):
		return classBroken // the caller closed its client
	}
	return classUnknown
}

func classifyReply(text string) class {
	word, _, _ := strings.Cut(text, " ")
	if c, ok := classOfWord[word]; ok {
		return c
	}
	switch {
	case strings.HasPrefix(text, "ERR max number of clients"):
		return classRefused
	case strings.Contains(text, unauthenticated), forbids(text):
		return classDenied
	}
	// Redis 6 and miniredis put a script's inner error behind words of their own.
	if strings.Contains(text, "script") || strings.Contains(text, "<string>") {
		for inner := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == ':' }) {
			if c, ok := classOfWord[strings.TrimPrefix(inner, "-")]; ok {
				return c
			}
		}
	}
	return classBroken
}

// midway reports whether a script was refused a command of its own: what it did
// before that stands, since Redis undoes nothing.
func midway(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.Contains(reply.Error(), "script")
}

// forbids reports whether the text is a refusal by the ACL. Within a script
// each version has words of its own.
func forbids(text string) bool {
	for _, words := range []string{"NOPERM", "ACL failure", "can't run this command", "can't access at least one"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
