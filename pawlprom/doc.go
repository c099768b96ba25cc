// Package pawlprom exports metrics of pawl for Prometheus. alerts.yml, with its tests, and
// a dashboard for Grafana lie beside it; docs/monitoring.md is their handbook.
//
// NewCollector looks at Redis with each scrape: run it in one process of a namespace, which
// need not be a worker.
//
//	pawl_queue_jobs{queue,state}             gauge; depth = ready + delayed + parked
//	pawl_queue_oldest_ready_seconds{queue}   gauge
//	pawl_queue_canary_age_seconds{queue}     gauge, of a queue with a canary
//	pawl_queue_canary_period_seconds{queue}  gauge, of a queue with a canary
//	pawl_queue_paused{queue}                 gauge, 0 or 1
//	pawl_queue_workers{queue}                gauge
//	pawl_queue_events_total{queue,event}     counter, fleet-wide, from Redis
//	pawl_doctor_ok{check}                    gauge, 0 or 1
//	pawl_redis_up                            gauge, 0 or 1
//
// NewMetrics is a hook: run it in every worker process.
//
//	pawl_job_runs_total{queue,kind,outcome}  counter
//	pawl_job_run_seconds{queue,kind}         histogram
//	pawl_job_wait_seconds{queue,kind}        histogram, from due to start
//	pawl_job_retries_total{queue,kind}       counter
//	pawl_job_deaths_total{queue,kind,reason} counter
//	pawl_job_crashes_total{queue,kind}       counter
//	pawl_job_lease_losses_total{queue,kind}  counter
//
// The values of labels are bounded. A queue is one that this process serves, or that
// NewCollector was given, if it was given any; a kind is one that this process has a handler for, and "other" stands for all
// that producers may have made up.
//
// Of two namespaces in one process, wrap the registerers, so that their series differ:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"namespace": "eu"}, reg)
package pawlprom
