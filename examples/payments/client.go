package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pawlq/pawl"
)

// paymentAPI is the client of the gateway.
type paymentAPI struct {
	url  string
	http *http.Client
}

func newPaymentAPI(url string) *paymentAPI {
	return &paymentAPI{url, &http.Client{Timeout: 10 * time.Second}} // a silent API holds a slot no longer
}

// charge returns the id of the charge. After an error that is not pawl.Permanent the
// card may have been charged or not.
func (a *paymentAPI) charge(ctx context.Context, c Charge, key string) (id string, err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return "", pawl.Permanent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return "", pawl.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		// net/http, too, takes it as leave to send a request again by itself, if the
		// connection was used before and ends without an answer.
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return "", err
	}
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		var made charge
		err := json.Unmarshal(text, &made)
		return made.ID, err
	case code == http.StatusConflict, code == http.StatusTooManyRequests, code >= 500:
		return "", fmt.Errorf("the API answered %s", resp.Status)
	default:
		// A card that is declined is so the next time, too.
		return "", pawl.Permanent(fmt.Errorf("the API answered %s: %s", resp.Status, bytes.TrimSpace(text)))
	}
}
