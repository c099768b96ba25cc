package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pawlq/pawl"
)

// browser is the client: what it knows of the service is its URL.
type browser struct {
	url     string
	journal *journal
}

// ask makes one request. body may be nil.
func (b *browser) ask(ctx context.Context, method, path string, body io.Reader) (code int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, b.url+path, body)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(got)), err
}

// order asks for an export, and returns its path.
func (b *browser) order(ctx context.Context, table string, pages int) (path string, err error) {
	body, err := json.Marshal(Export{Table: table, Pages: pages})
	if err != nil {
		return "", err
	}
	code, text, err := b.ask(ctx, http.MethodPost, "/exports", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	b.tell(table, "POST /exports", code, "")
	var job struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(text), &job); err != nil || code != http.StatusAccepted {
		return "", fmt.Errorf("POST /exports: %d %s", code, text)
	}
	return "/exports/" + job.ID, nil
}

// look asks how far an export is.
func (b *browser) look(ctx context.Context, path string) (Status, error) {
	var s Status
	code, text, err := b.ask(ctx, http.MethodGet, path, nil)
	if err == nil && code == http.StatusOK {
		err = json.Unmarshal([]byte(text), &s)
	} else if err == nil {
		err = fmt.Errorf("GET %s: %d %s", path, code, text)
	}
	return s, err
}

// watch prints each change until the export is in a state.
func (b *browser) watch(ctx context.Context, table, path string, until pawl.State) error {
	for last := (Status{}); ; {
		now, err := b.look(ctx, path)
		if err != nil {
			return err
		}
		if now != last {
			b.line(table, "GET …", now.String())
		}
		if last = now; now.State == until && (until != pawl.StateRunning || now.Note != "") {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for %s to be %s: %w", table, until, err)
		}
	}
}

// fetch asks for the result until there is an answer, as it is: the service, which waits
// a while before it says that there is none yet, keeps this from being a busy loop.
func (b *browser) fetch(ctx context.Context, table, path string) (code int, text string, err error) {
	for {
		code, text, err = b.ask(ctx, http.MethodGet, path+"/result", nil)
		if err != nil {
			return 0, "", err
		}
		b.tell(table, "GET …/result", code, text)
		if code != http.StatusAccepted {
			return code, text, nil
		}
	}
}

func (b *browser) tell(table, request string, code int, text string) {
	b.line(table, request, strings.TrimSpace(fmt.Sprintf("%d %s  %s", code, http.StatusText(code), text)))
}

func (b *browser) line(table, request, text string) {
	b.journal.line("client", table, "%-13s  %s", request, text)
}
