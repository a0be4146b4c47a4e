# Millrace: `make help` is the front door.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3.11
VENV := .venv
PY := $(VENV)/bin/python
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/millrace
JARS := $(CACHE)/jars
export MILLRACE_JARS ?= $(JARS)

.PHONY: help
help: ## Show what there is
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST); echo

##@ Try it
.PHONY: setup
setup: $(VENV)/.ready $(JARS)/.ready ## Virtual environment and pinned jars, nothing else

$(VENV)/.ready: pyproject.toml
	@echo "setup: Python environment in $(VENV)"
	@command -v $(PYTHON) >/dev/null || { echo "setup: $(PYTHON) is missing; install Python 3.11 or say 'make PYTHON=…'"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(JARS)/.ready: platform/jars/pom.xml
	@platform/jars/fetch $(JARS)
	@touch $@

.PHONY: demo
demo: setup ## A shop, a broker and example jobs, live; FOR=60s bounds it (or: make demo -- --for 60s)
	@platform/tools/ensure prometheus prometheus-alertmanager 2>/dev/null || true # without them it says what is missing
	@exec $(PY) -m millrace demo $(if $(or $(FOR),$(--for)),--for $(or $(FOR),$(--for))) $(WORDS)

.PHONY: run
run: setup ## Run specs on this machine: make run -- jobs/examples/visits.yaml
	@exec $(PY) -m millrace run $(WORDS)

# What follows `--` belongs to the command, but make takes it for goals of its own: give those an empty recipe.
WORDS := $(if $(filter demo run,$(firstword $(MAKECMDGOALS))),$(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS)))
ifneq ($(WORDS),)
.PHONY: $(WORDS)
$(eval $(WORDS):;@:)
endif
# Also when make itself is killed, nothing that it started stays behind.
demo run: export MILLRACE_ENDS_WITH_PARENT := 1

##@ Make it
.PHONY: generate
generate: $(VENV)/.ready ## CRDs and the reference page, from the resource models
	@$(PY) -m millrace.resources.crds && $(PY) -m millrace.resources.reference

##@ On Kubernetes
.PHONY: cluster
cluster: setup ## A kind cluster on this machine, with our images in it
	@PYTHONPATH=platform/cluster $(PY) -m millrace_cluster up

.PHONY: cluster-down
cluster-down: $(VENV)/.ready ## Remove that cluster and all that was made for it
	@PYTHONPATH=platform/cluster $(PY) -m millrace_cluster down

.PHONY: images
images: setup ## Build our images again and load them into the cluster
	@PYTHONPATH=platform/cluster $(PY) -m millrace_cluster images

.PHONY: dashboards
dashboards: $(VENV)/.ready ## Alert rules, their tests and the dashboards, from typed code
	@$(PY) -m millrace_dashboards

.PHONY: dashboards-preview
dashboards-preview: $(VENV)/.ready ## The dashboards as pictures in build/dashboards, from PROMETHEUS=HOST:PORT
	@$(PY) -m millrace_dashboards.preview --prometheus "$(or $(PROMETHEUS),127.0.0.1:9090)"

##@ Check it
.PHONY: lint
lint: $(VENV)/.ready ## ruff, mypy --strict, import-linter
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy && $(VENV)/bin/lint-imports

.PHONY: format
format: $(VENV)/.ready ## Put the code into shape
	@$(VENV)/bin/ruff check --fix . && $(VENV)/bin/ruff format .

.PHONY: test-unit
test-unit: $(VENV)/.ready ## Pure code: no JVM, no network
	@$(PY) -m pytest -m unit tests/unit

.PHONY: test-integration
test-integration: setup ## Real Kafka, Spark and PostgreSQL on this machine
	@platform/tools/ensure prometheus prometheus-alertmanager postgresql
	@$(PY) -m pytest -m integration tests/integration

.PHONY: test-e2e
test-e2e: setup ## A real cluster: brought up for the tests, and taken down again unless it was up
	@$(PY) -m pytest -m e2e tests/e2e

.PHONY: test
test: lint test-unit test-integration ## Lint, unit and integration tests; the cluster's own are apart: make test-e2e
	@echo "test: ran lint, unit and integration (real Kafka, Spark, PostgreSQL, Prometheus). Not run: e2e (make test-e2e)"
