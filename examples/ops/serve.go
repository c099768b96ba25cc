package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pawlq/pawl"
)

// region ops-routes

// routes are what the platform asks. Liveness does not ask pawl: while Redis is away every
// process would be restarted, in the middle of jobs whose outcomes it keeps.
func routes(w *pawl.Worker, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(out http.ResponseWriter, _ *http.Request) {
		if err := w.Healthy(); err != nil {
			http.Error(out, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(out, "ok\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		// What could be gathered is served, when Redis is away too: pawl_redis_up is 0 then.
		ErrorHandling: promhttp.ContinueOnError,
	}))
	return mux
}

// serve runs the worker until ctx ends, and answers the platform for as long as it drains.
func serve(ctx context.Context, w *pawl.Worker, h http.Handler, listener net.Listener) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	ran := w.Run(ctx) // a *DrainError names jobs that were given back

	ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := server.Shutdown(ending)
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return errors.Join(ran, err)
}

// endregion
