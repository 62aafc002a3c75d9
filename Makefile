# What a developer and CI run. `make` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

DATA ?= data
FUZZTIME ?= 30s
FAULTS ?= 200
KILLS ?= 200
RACE ?= -race
SCHEDULES ?= 20000
TESTFLAGS ?=

# The go command writes version and revision into the binary where there is a commit to tell of.
STAMP := $(shell git rev-parse --verify --quiet HEAD >/dev/null 2>&1 && echo true || echo false)

# The scenarios that this version must pass: the project's own, and those of these areas that stand beside the checkout.
AREAS ?= confirm drift grant health journal managed ops projector publish yield
SCENARIO_FILES = $(wildcard scenarios/*.yaml) $(foreach area,$(AREAS),$(wildcard ../shared/scenarios/$(area)-*.yaml))

# Without cgo, as journald is shipped, so that one build of the linter serves all machines of a kind.
LINTER := CGO_ENABLED=0 go tool -modfile=tools/go.mod golangci-lint

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## start journald with its own NATS server and its page; the journal is kept in DATA (default ./data)
	@echo 'journald: the page is at http://127.0.0.1:8086, the journal in $(DATA); Ctrl-C stops it. The program is bin/journald.' >&2
	@exec bin/journald serve --data '$(DATA)'

.PHONY: build
build: ## build bin/journald
	CGO_ENABLED=0 go build -trimpath -buildvcs=$(STAMP) -ldflags '-s -w' -o bin/journald ./cmd/journald

.PHONY: testenv
testenv: ## install ZooKeeper and Java (as root), build kube-apiserver and etcd; what is there already stays
	@.ci/install
	go run ./internal/testenv/cmd/kubebuild

# One package at a time: most of them start servers, and would only take the processor from each other.
.PHONY: test
test: testenv build ## run every test, against real servers, and the scenarios
	JOURNALD_SCENARIOS='$(abspath $(SCENARIO_FILES))' go test -p 1 -timeout 20m $(RACE) $(TESTFLAGS) ./...
	@$(MAKE) --no-print-directory scenarios

.PHONY: scenarios
scenarios: build ## run the scenario files, the project's own and those beside the checkout
	bin/journald test $(SCENARIO_FILES)

.PHONY: lint
lint: ## check style, layers and formatting, and that go.mod is tidy
	$(LINTER) run ./...
	go mod tidy -diff
	bash -n .ci/run
	bash -n .ci/install

.PHONY: fmt
fmt: ## format the code
	$(LINTER) fmt ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (default 30s)
	@grep -rE --include='*_test.go' -o '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file name; do \
		(set -x; go test -run '^$$' -fuzz "^$${name#func }$$" -fuzztime '$(FUZZTIME)' "$$(dirname "$$file")" </dev/null); \
	done

.PHONY: bench
bench: testenv ## run the benchmarks; each prints its ratio to a baseline of the same run
	go test -p 1 -timeout 60m -run '^$$' -bench . $(TESTFLAGS) \
		$$(grep -rlE --include='*_test.go' '^func Benchmark' . | xargs -n 1 dirname | sort -u)

.PHONY: crash
crash: testenv ## kill journald under load KILLS times (default 200), at random moments; JOURNALD_SEED repeats a run
	JOURNALD_KILLS='$(KILLS)' go test -count 1 -timeout 60m -v -run '^TestKill$$' $(TESTFLAGS) ./test/crash

.PHONY: soak
soak: testenv ## play SCHEDULES random fault schedules of managed elections (default 20,000), then FAULTS real ones (default 200)
	JOURNALD_SCHEDULES='$(SCHEDULES)' go test -count 1 -timeout 5h -run '^TestRandomFaults$$' $(TESTFLAGS) ./candidate
	JOURNALD_FAULTS='$(FAULTS)' go test -count 1 -timeout 2h -v -run '^TestKillsAndFreezes$$' $(TESTFLAGS) ./test/managed

.PHONY: interop
interop: testenv ## have other systems' own clients, Curator's and Flink's, read what journald writes
	go test -count 1 -timeout 20m -v $(TESTFLAGS) ./test/interop

.PHONY: clean
clean: ## remove what was built; the journal in DATA stays
	rm -rf bin
