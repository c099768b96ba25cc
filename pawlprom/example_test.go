package pawlprom_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlprom"
)

// One process tells of the queues: a small one of its own, or any that is there once.
func ExampleNewCollector() {
	// region collector
	serve := func(client *pawl.Client) (http.Handler, error) {
		reg := prometheus.NewRegistry()
		if err := reg.Register(pawlprom.NewCollector(client)); err != nil { // of all queues that there are
			return nil, err
		}
		return promhttp.HandlerFor(reg, promhttp.HandlerOpts{}), nil
	}
	// endregion

	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	client, err := pawl.New(rdb, pawl.Config{})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := serve(client)
	fmt.Println(handler != nil, err)
	// Output: true <nil>
}

// Each process with workers tells of its runs.
func ExampleNewMetrics() {
	// region metrics
	open := func(rdb redis.UniversalClient, reg prometheus.Registerer) (*pawl.Client, error) {
		metrics, err := pawlprom.NewMetrics(reg)
		if err != nil {
			return nil, err
		}
		return pawl.New(rdb, pawl.Config{Hooks: []pawl.Hook{metrics}})
	}
	// endregion

	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = rdb.Close() }()
	reg := prometheus.NewRegistry()
	client, err := open(rdb, reg)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	_, err = client.Queue("emails").Enqueue(ctx, note{})
	if err != nil {
		log.Fatal(err)
	}
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
	if err != nil {
		log.Fatal(err)
	}
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { stop(); return nil })
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		fmt.Println(f.GetName(), len(f.GetMetric()))
	}
	// Output:
	// pawl_job_run_seconds 1
	// pawl_job_runs_total 1
	// pawl_job_wait_seconds 1
}
