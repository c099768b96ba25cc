package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// Invoice makes an invoice; its result is where that lies.
type Invoice struct {
	Order int `json:"order"`
}

func (Invoice) Kind() string { return "invoice" }

type stored struct {
	URL string `json:"url"`
}

// serve runs a worker of invoices until n have ended.
func serveInvoices(m *memory, n int) (stop func()) {
	w := m.worker("invoices")
	// region handler
	pawl.HandleResult(w, func(_ context.Context, job *pawl.Job[Invoice]) (stored, error) {
		if job.Args.Order == 0 {
			return stored{}, pawl.Permanent(errors.New("no such order"))
		}
		return stored{fmt.Sprintf("s3://invoices/%d.pdf", job.Args.Order)}, nil
	})
	// endregion
	ended := make(chan struct{})
	go func() { defer close(ended); m.run(w, n) }()
	return func() { <-ended }
}

// Somebody waits for what the job makes, as behind a button.
func ExampleAwait() {
	m := inMemory()
	defer m.stop()
	defer serveInvoices(m, 1)()
	invoices, ctx := m.Queue("invoices"), context.Background()

	job := must(invoices.Enqueue(ctx, Invoice{Order: 7}, pawl.Retain(time.Minute)))

	patience, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	made, err := pawl.Await[stored](patience, invoices, job.ID)
	fmt.Println(made.URL, err)
	// Output: s3://invoices/7.pdf <nil>
}

// What became of a job, in all ways in which it can end.
func ExampleQueue_Wait() {
	m := inMemory()
	defer m.stop()
	defer serveInvoices(m, 1)()
	invoices, ctx := m.Queue("invoices"), context.Background()
	job := must(invoices.Enqueue(ctx, Invoice{Order: 7}, pawl.Retain(time.Minute)))

	info, err := invoices.Wait(ctx, job.ID)
	var failed *pawl.JobError
	switch {
	case err == nil:
		fmt.Printf("%s: %s\n", info.State, info.Result)
	case errors.As(err, &failed):
		fmt.Println(failed.State, failed.Reason, failed.Text)
	case errors.Is(err, pawl.ErrNotFound):
		fmt.Println("it is over, and nothing of it was kept")
	default:
		fmt.Println("nobody knows yet:", err)
	}
	// Output: done: {"url":"s3://invoices/7.pdf"}
}

func ExampleJobError() {
	m := inMemory()
	defer m.stop()
	defer serveInvoices(m, 1)()
	invoices, ctx := m.Queue("invoices"), context.Background()
	job := must(invoices.Enqueue(ctx, Invoice{Order: 0}, pawl.Retain(time.Minute)))

	_, err := pawl.Await[stored](ctx, invoices, job.ID)
	var failed *pawl.JobError
	if errors.As(err, &failed) {
		fmt.Println(failed.ID == job.ID, failed.State, failed.Reason, failed.Text)
	}
	// Output: true dead permanent no such order
}
