package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// readCommand reads one client command, an array of bulk strings or an inline
// line, and returns its bytes as they came beside its words.
func readCommand(r *bufio.Reader) (raw []byte, words [][]byte, err error) {
	head, err := r.ReadBytes('\n')
	if err != nil {
		return nil, nil, err
	}
	if head[0] != '*' {
		return head, bytes.Fields(head), nil
	}
	n, err := count(head)
	if err != nil {
		return nil, nil, err
	}
	raw = head
	for range n {
		start := len(raw)
		if raw, err = appendValue(raw, r); err != nil {
			return nil, nil, err
		}
		_, word, _ := bytes.Cut(raw[start:], []byte("\r\n"))
		words = append(words, bytes.TrimSuffix(word, []byte("\r\n")))
	}
	return raw, words, nil
}

// readReply reads one whole reply of RESP2 or RESP3, push frames and
// attributes included.
func readReply(r *bufio.Reader) ([]byte, error) { return appendValue(nil, r) }

func appendValue(raw []byte, r *bufio.Reader) ([]byte, error) {
	head, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	raw = append(raw, head...)
	parts := 0
	switch head[0] {
	case '$', '!', '=':
		n, err := count(head)
		if err != nil || n < 0 {
			return raw, err
		}
		start := len(raw)
		raw = append(raw, make([]byte, n+2)...)
		_, err = io.ReadFull(r, raw[start:])
		return raw, err
	case '*', '~', '>':
		parts, err = count(head)
	case '%':
		parts, err = count(head)
		parts *= 2
	case '|': // an attribute stands before the value that it describes
		parts, err = count(head)
		parts = 2*parts + 1
	}
	for i := 0; i < parts && err == nil; i++ {
		raw, err = appendValue(raw, r)
	}
	return raw, err
}

func count(head []byte) (int, error) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(head[1:])))
	if err != nil {
		return 0, fmt.Errorf("redistest: not a RESP length: %q", head)
	}
	return n, nil
}
