# The targets that people and CI call. `make` lists them.

# Tools, pinned here and nowhere else. They are run by `go run`, which keeps
# them out of go.mod and caches what it built. golangci-lint is not among them:
# five minutes to build on two cores, for little that these two do not see; the
# rest of what it would check is in structure_test.go and lua_lint_test.go.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
ERRCHECK    := github.com/kisielk/errcheck@v1.30.0

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c

# Every module of the repository: the library and its companions.
MODULES := $(patsubst %/go.mod,%,$(sort $(shell find . -name go.mod -not -path '*/testdata/*' -not -path '*/node_modules/*')))

# Those that are tested without the race detector and have no benchmarks of Go:
# programs that no one imports. PostgreSQL's driver and River, which bench
# measures, take long to build a second time; an example is run as its own
# binary, in which the detector of its test would see nothing.
EXAMPLES := $(filter ./examples/%,$(MODULES))
LIBRARY  := $(filter-out ./bench $(EXAMPLES),$(MODULES))

# What CI runs, in this order; those with a + between them at the same time, as one
# computes and the other waits.
VERIFY := build fmt lint smoke serial+examples companions quickstart fuzz peers library

TESTFLAGS ?= -timeout 30m
BENCH     ?= .
FUZZTIME  ?= 10s
FUZZBUILD ?= -fuzz Fuzz
SEEDS     ?= 20
JOBS      ?= 1000
AT_ONCE   ?= 3
SOAK      ?= 30m

# Runs $(2) in each of the modules $(1).
in   = @for module in $(1); do (cd $$module; set -x; $(2)); done
each = $(call in,$(MODULES),$(1))

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: build
build: ## build and vet every module, its tests and examples too
	$(call each,go build -o /dev/null ./... && go vet ./...)

.PHONY: test
test: ## test every module
	@command -v redis-server > /dev/null || echo "no redis-server on PATH: the real-Redis suite will be skipped"
	@compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null || command -v initdb > /dev/null || echo "no initdb of PostgreSQL: its part of pawlsql's suite will be skipped"
	@command -v mariadbd > /dev/null || [ -x /usr/sbin/mariadbd ] || echo "no mariadbd: its part of pawlsql's suite will be skipped"
	@command -v promtool > /dev/null || echo "no promtool: the tests of pawlprom's alerts will be skipped"
	$(call each,go test $(TESTFLAGS) ./...)

.PHONY: race
race: library companions ## test all that is imported under the race detector, in random order

RACE := go test -race -shuffle=on

.PHONY: library
library: ## the part of race that is pawl itself
	$(RACE) $(TESTFLAGS) $$(go list ./... | grep -v /examples/)

.PHONY: companions
companions: ## the part of race that are the modules beside it
	$(call in,$(filter-out .,$(LIBRARY)),$(RACE) $(TESTFLAGS) ./...)

.PHONY: examples
examples: ## test the examples: they are run, and have to tell their stories
	$(call in,. $(EXAMPLES),go test -shuffle=on $(TESTFLAGS) $$(go list ./... | grep /examples/))

# Tests of the scripts and of the model have one goroutine each, and the race
# detector slows the Lua of miniredis down five times: their files say so to the
# build, and they are run here.
.PHONY: serial
serial: ## test what "make race" leaves out: it has nothing to find there
	@tests=$$(grep -l '^//go:build !race' *_test.go | xargs grep -ohE '^func Test[A-Za-z0-9_]+' | cut -c6- | paste -sd'|'); set -x; \
	go test -shuffle=on $(TESTFLAGS) -run "^($$tests)\$$" .

.PHONY: fmt
fmt: ## fail where gofmt would change something
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on: $$unformatted"; exit 1; fi

.PHONY: lint
lint: ## staticcheck and errcheck on every module
	$(call each,go run $(STATICCHECK) ./... && go run $(ERRCHECK) ./...)

.PHONY: bench
bench: ## pawl beside its peers; FLAGS= are of bench/README.md
	go run ./bench $(FLAGS)

# The tests run all of its workloads with small N, on the systems that are fast to
# start: "-short" by itself would do it again.
.PHONY: peers
peers: ## test bench, and see that it can be run from here
	cd bench && go test $(TESTFLAGS) ./...
	go run ./bench -list > /dev/null

.PHONY: microbench
microbench: ## run the benchmarks of Go; BENCH=regexp chooses
	$(call in,$(LIBRARY),go test -run '^$$' -bench '$(BENCH)' -benchmem ./...)

.PHONY: smoke
smoke: ## run each benchmark of Go once, to see that it runs
	$(call in,$(LIBRARY),! grep -rqs '^func Benchmark' --include='*_test.go' . || go test -run '^$$' -bench . -benchtime 1x ./... | { grep -v 'no test' || true; })

# The targets are found, not listed, so that a new one is not forgotten. Those of
# a package are built once: to link each by itself takes longer than the two
# seconds it has in verify. As many run at once as there are CPUs. What one
# has found lies in testdata/fuzz of its package: it becomes an f.Add. Until Go
# 1.27 a target may also fail because its time is over (go.dev/issue/75804).
.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	one() { \
		$$1/bin -test.run '^$$' -test.fuzz "^$$2\$$" -test.fuzztime $(FUZZTIME) -test.parallel 1 -test.fuzzcachedir "$$3" > $$1/$$2 2>&1 || \
			{ grep -qx ' *context deadline exceeded' $$1/$$2 && ! grep -qE 'Failing input|panic|terminated' $$1/$$2; } || { cat $$1/$$2; exit 1; }; \
		echo "$$2: $$(grep -o 'execs: [0-9]*' $$1/$$2 | tail -1)"; }; export -f one; \
	root=$$PWD; for dir in $$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n 1 dirname | sort -u); do \
		cd "$$root/$$dir"; echo "fuzz $$dir"; go test -c $(FUZZBUILD) -o $$tmp/bin .; \
		cache=$$(go env GOCACHE)/fuzz/$$(go list .); \
		{ grep -ohE '^func Fuzz[A-Za-z0-9_]*' *_test.go || true; } | cut -c6- | sort | \
			xargs -P "$$(getconf _NPROCESSORS_ONLN)" -I {} bash -c "one $$tmp {} $$cache"; \
	done

.PHONY: chaos
chaos: ## break everything at random and check; SEEDS=, JOBS= and AT_ONCE= say how much
	@CHAOS_SEEDS=$(SEEDS) CHAOS_JOBS=$(JOBS) go test -count=1 -timeout 6h -parallel $(AT_ONCE) -v -run '^TestChaos$$' ./internal/chaos | grep -v '^=== '

.PHONY: mutants
mutants: ## plant bugs in the worker's code, one at a time, and see each caught
	@CHAOS_MUTANTS=all go test -count=1 -timeout 2h -v -run '^TestMutants' ./internal/chaos | grep -v '^=== '

.PHONY: soak
soak: ## a mixed load with a fault every few seconds, for SOAK=; prints what it took up
	@CHAOS_SOAK=$(SOAK) go test -count=1 -timeout 24h -v -run '^TestSoak$$' ./internal/chaos | grep -v '^=== '

.PHONY: quickstart
quickstart: ## run the quickstart and check what it says at the end
	@out=$$(env -u REDIS_URL go run ./examples/quickstart); echo "$$out"; grep -qx 'pawl quickstart: ok' <<< "$$out"

.PHONY: verify
# Two seconds of fuzzing are not worth a build for the guidance by coverage, of all
# packages there are, which takes a minute: without it they try many times as much.
verify: export FUZZTIME = 2s
verify: export FUZZBUILD =
verify: ## all that CI runs
	@for step in $(VERIFY); do \
		echo "== $$step"; start=$$SECONDS; \
		$(MAKE) --no-print-directory --jobs --output-sync $${step//+/ }; \
		echo "== $$step: $$((SECONDS - start)) s"; \
	done

# A companion requires the next tag of the library, which is not published yet,
# and never has a replace, which would break `go install`. So it is tidied in a
# copy of its go.mod that has one for each module here.
.PHONY: tidy
tidy: ## go mod tidy in every module
	@root=$$PWD; export GOWORK=off; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	for module in $(MODULES); do (cd $$module; echo "tidy $$module"; \
		cp go.mod "$$tmp/go.mod"; rm -f "$$tmp/go.sum"; if [ -f go.sum ]; then cp go.sum "$$tmp/go.sum"; fi; \
		for other in $(MODULES); do \
			path=$$(cd "$$root/$$other"; go list -m); \
			if [ "$$other" != "$$module" ]; then go mod edit -replace "$$path=$$root/$$other" "$$tmp/go.mod"; fi; \
		done; \
		go mod tidy -modfile="$$tmp/go.mod"; \
		for other in $(MODULES); do \
			path=$$(cd "$$root/$$other"; go list -m); \
			go mod edit -dropreplace "$$path" "$$tmp/go.mod"; \
		done; \
		cp "$$tmp/go.mod" go.mod; if [ -f "$$tmp/go.sum" ]; then cp "$$tmp/go.sum" go.sum; fi); \
	done
