# Everything here sets itself up: a virtual environment with locked, hashed dependencies, and the control plane's
# programs, which are built once into a cache folder. Only Python 3.11 or newer and make must be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find operator -type f -not -name '*.pyc')
export PYTHONPATH := tools

.DEFAULT_GOAL := help
.PHONY: help demo quick test test-faults test-cluster test-kueue test-search test-alone bench bench-quick cluster docs reference image sbom lint format crds lock clean

help: ## Say what can be made.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

$(VENV)/.dependencies: requirements/dev.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.txt
	touch $@

# The tests import the operator from its wheel, as a user installs it.
$(VENV)/.installed: $(VENV)/.dependencies pyproject.toml README.md $(SOURCES)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall .
	touch $@

demo: $(VENV)/.installed ## Show a start from apply to Succeeded (KUEUE=1: in Kueue's queue; CLUSTER=current: on your cluster, after asking).
	$(BIN)/python -m demo $(if $(KUEUE),--kueue) $(if $(CLUSTER),--cluster $(CLUSTER))

quick: lint ## Run the checks, and the tests that need no control plane: under two minutes.
	$(PYTEST) --quiet tests/unit tests/reconcile

# Several at a time, because most of them wait for their clusters. Only the tests that run alone are measured: what the
# others run, these run too, and each operator that is measured takes half as long again to start.
test: lint docs ## Run all checks and tests, on the real control plane too.
	rm -f .coverage*
	$(MAKE) --jobs=3 --keep-going test-faults test-cluster test-kueue test-search test-alone
	$(BIN)/python -m coverage combine --quiet .coverage-*
	$(BIN)/python -m coverage report --fail-under=95
	$(BIN)/python -m coverage report --fail-under=100 --include='$(PURE)' --omit='$(IMPURE)'

PYTEST = $(BIN)/python -m pytest -p no:cacheprovider
MEASURED = COVERAGE_FILE=.coverage-$@ $(PYTEST) --cov --cov-report=

test-faults test-kueue: test-%: $(VENV)/.installed
	$(PYTEST) tests/cluster/$*

test-cluster: $(VENV)/.installed $(VENV)/sdk/.dependencies
	$(PYTEST) tests/cluster --ignore=tests/cluster/faults --ignore=tests/cluster/kueue

test-search: $(VENV)/.installed
	$(PYTEST) tests/faults tests/model

test-alone: $(VENV)/.installed
	$(MEASURED) --ignore=tests/cluster --ignore=tests/faults --ignore=tests/model

# What decides and renders, without I/O: every branch of it is tested. The same folders are held to be pure (pyproject).
PURE := */api/*,*/checks/*,*/records/*,*/render/*,*/reconcile/*,*/preflight/probe_start.py,*/preflight/ulid.py
IMPURE := */reconcile/reconciler.py

bench: $(VENV)/.installed $(VENV)/sdk/.dependencies ## Measure the operator, and write docs/performance.md.
	$(BIN)/python -m bench

bench-quick: $(VENV)/.installed ## Measure less, in three minutes, and write nothing.
	$(BIN)/python -m bench --quick

# The Kubeflow SDK, which the operator is compared with and which reads its jobs in tests, brings a client of its own.
$(VENV)/sdk/.dependencies: requirements/bench.txt
	$(PYTHON) -m venv --clear $(VENV)/sdk
	$(VENV)/sdk/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	touch $@

cluster: $(VENV)/.installed ## Keep a control plane up until Ctrl-C, and print its KUBECONFIG (KUEUE=1 for Kueue too).
	$(BIN)/python -m controlplane up $(if $(KUEUE),--kueue)

lint: $(VENV)/.installed ## Check style, types and layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed ## Format the code.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

crds: $(VENV)/.installed ## Write the CRDs from the models, here and into the chart.
	$(BIN)/python -m generate_crds crds deploy/chart/dispatch-operator/files/crds

reference: $(VENV)/.installed ## Write the generated pages of the documentation, from models, chart and commands.
	$(BIN)/python -m reference docs/reference

SITE := build/site
docs: $(VENV)/.installed ## Build the documentation's site into build/site; a warning is an error, and nothing is fetched.
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --conf-dir docs --doctree-dir build/doctrees . $(SITE)

BASE = python:3.13-slim
IMAGE = dispatch-operator
PLATFORMS = linux/amd64,linux/arm64
SOURCE = $(shell git remote get-url origin 2>/dev/null)
REVISION = $(shell git rev-parse HEAD)
image: ## Build and push the image of a release: IMAGE=NAME:TAG BASE=python:3.13-slim@sha256:… (docs/release.md).
	@case '$(BASE)' in *@sha256:????????????????????????????????????????????????????????????????) ;; \
		*) echo "BASE=$(BASE) names no digest, and a release must: see docs/release.md for how to find it" >&2; exit 2;; esac
	docker buildx build --platform $(PLATFORMS) --provenance=mode=max --sbom=true --push --tag $(IMAGE) \
		--build-arg BASE=$(BASE) --build-arg REVISION=$(REVISION) --build-arg SOURCE=$(SOURCE) \
		--metadata-file build/image.json .

# An environment with what the image's has, and nothing for development.
$(VENV)/run/.dependencies: requirements/run.txt $(VENV)/.dependencies
	$(PYTHON) -m venv --clear --without-pip $(VENV)/run
	$(BIN)/pip --python $(VENV)/run/bin/python install --quiet --disable-pip-version-check --require-hashes --requirement $<
	touch $@

sbom: $(VENV)/run/.dependencies ## Write build/sbom.cdx.json: the packages of the image, with their licences (CycloneDX).
	mkdir -p build
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
		--output-file build/sbom.cdx.json $(VENV)/run/bin/python

lock: ## Lock the dependencies anew (needs uv).
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 pyproject.toml -o requirements/run.txt
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --extra dev --extra docs pyproject.toml -o requirements/dev.txt
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 requirements/build.in -o requirements/build.txt
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 requirements/go.in -o requirements/go.txt
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 requirements/node.in -o requirements/node.txt
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 requirements/bench.in -o requirements/bench.txt

clean: ## Remove what was made here (the control plane's programs stay in the cache).
	rm -rf $(VENV) dist build .coverage* .mypy_cache .pytest_cache .ruff_cache
