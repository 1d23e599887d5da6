# Everything that a person or a CI job starts. `make` alone lists it.
#
# Needs GNU make, Python 3.11 or newer with its venv module, and a C compiler for the slow-disk shim. Go and Java are used
# where the machine has them. Variables given on the command line (KEEP=1, ONLY=..., PYTHON=...) reach every recipe.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
# Without cached bytecode every process of every test compiles all of our modules, and pytest rewrites every test again.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK := requirements/dev.lock
DEMO_READY := $(VENV)/.demo-ready
DEMO_LOCK := requirements/demo.lock
DOCS_VENV := .venv-docs
DOCS_LOCK := requirements/docs.lock
PYTEST ?= $(BIN)/python -m pytest
PYTEST_ARGS ?=
# Tests run side by side. What shares a cluster stays in one process, which waits for brokers most of the time; tests
# without real parts fill that time.
WORKERS ?= 4
BY_LOT = --numprocesses=$(WORKERS) --dist=loadscope --no-loadscope-reorder
TEST = not slow and not cluster and not image
# What judges, plans and moves, in one and a half minutes; adapters, commands, tools and load plans are left to `test`,
# and so is killing the operator after each of its side effects.
FAST_FOLDERS = $(addprefix tests/unit/,api controllers core probes quarantine telemetry) $(wildcard tests/unit/test_*.py) \
	tests/properties tests/scenarios tests/contract
FAST_WITHOUT = $(wildcard tests/properties/test_kills*.py) tests/properties/test_invariants_of_hours.py
FAST = not kafka and not apiserver and not prometheus and not chart and not spark and not slow and not cluster and not image
DEMO_ARGS ?=
MIKE_ARGS ?=
BENCH_ARGS ?=
FAULTS_ARGS ?=
MUTANTS_ARGS ?=
RELEASE_ARGS ?=
IMAGES ?= operator
UV_VERSION := 0.13.8
RESOLVE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11

# The first interpreter that is new enough; asked only when the environment has to be made.
find_python = for p in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	if command -v "$$p" >/dev/null && "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then echo "$$p"; exit 0; fi; done; \
	echo 'error: no Python 3.11 or newer found. Install one, or name it: make setup PYTHON=/path/to/python3' >&2; exit 1

##@ Start here

.PHONY: help
help: ## List the targets (this is the default)
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z][a-z-]*:.*## / {printf "  make %-21s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(READY) ## Make the environment in .venv from the locked requirements

.PHONY: demo
demo: $(DEMO_READY) ## Break a real cluster twice and watch its leaders leave and come back (KEEP=1 leaves it up)
	@$(BIN)/python -m demo $(DEMO_ARGS)

##@ Tests

.PHONY: test
test: lint parts ## Lint, then unit, property, contract, architecture and integration tests, real parts included
	@$(PYTEST) $(BY_LOT) -m "$(TEST)" $(PYTEST_ARGS)

.PHONY: test-fast
test-fast: WORKERS = 3
test-fast: setup ## What judges, plans and moves: unit tests, scenarios, invariants with few examples, no real part
	@$(PYTEST) $(FAST_FOLDERS) $(FAST_WITHOUT:%=--ignore=%) --numprocesses=$(WORKERS) --dist=worksteal -m "$(FAST)" --hypothesis-profile=few $(PYTEST_ARGS)

.PHONY: test-slow
test-slow: setup parts ## Only the tests that take longer than a minute each (SHARD=2/3: a third; CHANGED_SINCE=REV: what changed)
	@$(PYTEST) $(BY_LOT) -m slow $(if $(SHARD),--shard=$(SHARD)) $(if $(CHANGED_SINCE),--changed-since=$(CHANGED_SINCE)) $(PYTEST_ARGS)

.PHONY: test-all
test-all: lint verify parts ## Every test but those on a node, the long ones too (for CI)
	@$(PYTEST) -m "not cluster and not image" --hypothesis-profile=thorough $(PYTEST_ARGS)

.PHONY: image-test
image-test: setup parts ## Run and search the built images, and measure them: reports/image.json (root, Debian)
	@$(PYTEST) -m image tests/integration/images $(PYTEST_ARGS)

.PHONY: cluster-test
cluster-test: setup ## Install Bellwether on a whole Kubernetes node and break the Kafka that runs there (root, Debian)
	@$(BIN)/python -m node build
	@$(BIN)/python -m images build
	@$(BIN)/python -m nodeparts.kafka_image
	@$(BIN)/python -m realparts.prepare helm
	@$(PYTEST) -m cluster tests/cluster $(PYTEST_ARGS)

.PHONY: test-versions
test-versions: setup parts ## Run the suites on other versions and write docs/supported-versions.md (KAFKA=4.0.2,4.4.0 HELM=all)
	@$(BIN)/python -m versionmatrix $(if $(KAFKA),--kafka $(KAFKA)) $(if $(KUBERNETES),--kubernetes $(KUBERNETES)) \
		$(if $(HELM),--helm $(HELM)) $(if $(PYTHONS),--python $(PYTHONS)) $(if $(SPARK),--spark $(SPARK))

.PHONY: chart-test
chart-test: setup parts ## Only the tests of the Helm chart: values, objects, install, upgrade, rollback, uninstall
	@$(PYTEST) -m chart $(PYTEST_ARGS)

.PHONY: runbook-test
runbook-test: setup parts ## Run every command of the alert pages and of the runbook on a real, broken installation
	@$(PYTEST) tests/integration/runbooks $(PYTEST_ARGS)

.PHONY: mutation-test
mutation-test: setup ## Change the deciding modules in small ways and count which tests notice (20 minutes; MUTANTS_ARGS=...)
	@$(BIN)/python -m mutants $(MUTANTS_ARGS)

.PHONY: bench-demo
bench-demo: setup parts ## Repeat the demo's faults ten times; report median and worst
	@$(BIN)/python -m demo --repeat $(or $(REPEAT),10) $(DEMO_ARGS)

.PHONY: bench-detection
bench-detection: setup ## Simulate months of noise and faults; report false demotions, missed faults and delays
	@$(BIN)/python -m monthsim $(BENCH_ARGS)

.PHONY: faults
faults: setup parts ## Break real parts in many ways and judge each verdict (ONLY=name,name runs a few)
	@$(BIN)/python -m faults $(FAULTS_ARGS)

.PHONY: bench-faults
bench-faults: setup parts ## Cut and blackhole listeners ten times with 3,000 partitions; report seconds to zero leaders (REPEAT=...)
	@$(BIN)/python -m faults --only listener-cut,listener-blackholed --partitions 3000 --repeat $(or $(REPEAT),10) $(FAULTS_ARGS)

.PHONY: bench-spark
bench-spark: setup ## Plan for clusters of up to 3,000,000 partitions; report gap, moves, time and memory (BENCH_ARGS="--large 2000000": the large ones alone; "--exact 100": small ones next to exact optima)
	@$(BIN)/python -m sparkplans $(BENCH_ARGS)

.PHONY: bench-loads
bench-loads: setup ## Go from a day of up to 288,000,000 samples to a plan; report CPU time, memory and errors (BENCH_ARGS=...)
	@$(BIN)/python -m sparkloads $(BENCH_ARGS)

.PHONY: bench-restart
bench-restart: setup parts ## Restart six real brokers one after another, with the operator and without (BENCH_ARGS=...)
	@$(BIN)/python -m restarts $(BENCH_ARGS)

.PHONY: bench
bench: setup parts ## Move all leaders of a broker away and back, next to other tools: reports/bench.json (BENCH_ARGS=...)
	@$(BIN)/python -m evacuation $(BENCH_ARGS)

.PHONY: bench-cures
bench-cures: setup parts ## Play faults with each cure; report what each kind of client loses (BENCH_ARGS=...)
	@$(BIN)/python -m cures $(BENCH_ARGS)

.PHONY: bench-move
bench-move: setup parts ## Move up to 5,000 leaders away and back; report what clients lose and the cost by the rule (BENCH_ARGS=...)
	@$(BIN)/python -m movecosts $(BENCH_ARGS)

.PHONY: dashboards-preview
dashboards-preview: setup parts ## Draw both dashboards from a real Prometheus, in health and in a fault: reports/dashboards (Chromium for the pictures)
	@$(BIN)/python -m dashboardpreview

.PHONY: bench-plan
bench-plan: setup ## Reconcile 1,000 brokers and 200,000 partitions through the real adapter; report CPU times (BENCH_ARGS=...)
	@$(BIN)/python -m plancosts $(BENCH_ARGS)

.PHONY: bench-detection-costs
bench-detection-costs: setup parts ## Measure what it costs to watch 1,000 brokers while nothing happens (BENCH_ARGS=...)
	@$(BIN)/python -m detectioncosts $(BENCH_ARGS)

##@ Code

.PHONY: lint
lint: setup ## Check style, formatting, types and import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo 'error: some files are not formatted; run: make fmt' >&2; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: fmt
fmt: setup ## Format the code and fix what ruff can fix
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: generate
generate: setup ## Write the files that are generated from the models of API and chart and from the table of standings
	@$(BIN)/python -m bellwether.api.v1alpha1.generate
	@$(BIN)/python docs/draw_states.py
	@$(BIN)/python -m chartvalues.generate
	@$(BIN)/python -m dashboards.generate
	@$(BIN)/python docs/draw_metrics.py
	@$(BIN)/python docs/draw_remedies.py

.PHONY: docs
docs: $(DOCS_VENV)/.ready ## Build the documentation site into reports/site; every link and anchor is checked
	@PYTHONPATH=docs NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet

.PHONY: docs-version
docs-version: $(DOCS_VENV)/.ready ## Add the site to the branch gh-pages: as main, or if HEAD is tagged v0.1.0 as 0.1 and latest (MIKE_ARGS=--push)
	@tag="$$(git tag --points-at HEAD 'v*')"; minor="$${tag#v}"; minor="$${minor%.*}"; export PYTHONPATH=docs NO_MKDOCS_2_WARNING=1 \
		PATH="$(abspath $(DOCS_VENV))/bin:$$PATH"; mike --quiet deploy $(MIKE_ARGS) --update-aliases $${minor:-main} $${minor:+latest}; \
		mike --quiet set-default $(MIKE_ARGS) --allow-undefined latest

$(DOCS_VENV)/.ready: $(DOCS_LOCK)
	@python="$$($(find_python))"; "$$python" -m venv --clear $(DOCS_VENV)
	@$(DOCS_VENV)/bin/pip --disable-pip-version-check install --quiet --require-hashes -r $(DOCS_LOCK)
	@touch $@

.PHONY: verify
verify: setup ## Check that the generated files are fresh
	@$(BIN)/python -m bellwether.api.v1alpha1.generate --check
	@$(BIN)/python docs/draw_states.py --check
	@$(BIN)/python -m chartvalues.generate --check
	@$(BIN)/python -m dashboards.generate --check
	@$(BIN)/python docs/draw_metrics.py --check
	@$(BIN)/python docs/draw_remedies.py --check

##@ Releases

.PHONY: release-dry-run
release-dry-run: setup ## Build, sign and publish a release on this machine, twice the same (TAG=v0.1.0, IMAGES="operator spark"; root, Debian)
	@$(BIN)/python packaging/release.py dry-run $(TAG:%=--tag=%) $(IMAGES:%=--image=%) $(RELEASE_ARGS)

##@ A whole Kubernetes node (root and Debian)

.PHONY: image
image: setup ## Build the container images for real, on a base made with debootstrap, then test them (root, Debian)
	@$(BIN)/python -m images build
	@$(MAKE) --no-print-directory image-test

.PHONY: cluster
cluster: setup ## Bring up a Kubernetes node that runs pods, apart from everything else on this machine
	@$(BIN)/python -m node up

.PHONY: cluster-down
cluster-down: setup ## End it and remove everything of it
	@$(BIN)/python -m node down

##@ Parts and requirements

.PHONY: parts
parts: $(DEMO_READY) ## Fetch and build the real parts (Kafka, API server, load balancer) into the cache
	@$(BIN)/python -m realparts.prepare

.PHONY: lock
lock: setup ## Resolve the requirements and write them, with hashes and without hosts (UPGRADE=1 takes new versions)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(RESOLVE) $(if $(UPGRADE),--upgrade) pyproject.toml --all-extras \
		--group lint --group test --group parts --group build --group bench --group dashboards --group release -o $(LOCK)
	@# The image gets what is tested: its locks are parts of the first one.
	@$(RESOLVE) pyproject.toml --extra aws --extra operator --extra load --constraint $(LOCK) -o requirements/runtime.lock
	@$(RESOLVE) pyproject.toml --all-extras --constraint $(LOCK) -o requirements/spark.lock
	@$(RESOLVE) --group build --constraint $(LOCK) -o requirements/build.lock
	@# The documentation has an environment of its own.
	@$(RESOLVE) --group docs -o $(DOCS_LOCK)
	@# And so does the demo.
	@$(RESOLVE) pyproject.toml --extra operator --group parts --group build --constraint $(LOCK) -o $(DEMO_LOCK)
	@if grep -n '://' requirements/*.lock; then echo 'error: a lock names a host' >&2; exit 1; fi

.PHONY: clean
clean: ## Remove the environment, caches and reports; the real parts' cache stays
	rm -rf $(VENV) $(DOCS_VENV) dist reports .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# Made again only when a lock or pyproject.toml changes. A stamp is touched last, so a broken install is not taken for done.
# The demo wants a part of what all of it is, in the same folder.
install = python="$$($(find_python))"; PYTHONPATH=tests/support "$$python" -m realparts.environment $(VENV)

$(DEMO_READY): $(DEMO_LOCK) pyproject.toml
	@$(install) $(DEMO_LOCK)
	@touch $@

$(READY): $(LOCK) pyproject.toml
	@$(install) $(LOCK)
	@touch $(DEMO_READY) $@
