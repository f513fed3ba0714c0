# `make demo` and `make test` set everything up on a fresh machine; the rest is for those who work on the code.
VENV   := .venv
PYTHON := $(VENV)/bin/python
UV     := $(shell command -v uv 2>/dev/null)

# The distributions of this repository: pilotage, and those that it does not need on a cluster.
DISTRIBUTIONS := pyproject.toml packages/harbor/pyproject.toml packages/sim/pyproject.toml
EDITABLE      := $(patsubst %/pyproject.toml,-e %,$(addprefix ./,$(DISTRIBUTIONS)))

.PHONY: demo test wheels image image-test simulate load faults matrix fuzz lint bench experiments conformance kube field \
  manifests lock clean help

demo: $(VENV)/dev ## run the whole system on this machine: deploy, redeploy and judge a canary under load, delete, explain, and nothing left
	$(PYTHON) -m demo

test: $(VENV)/dev ## run every test, in four parts side by side, on real control planes, built if need be
	$(MAKE) --no-print-directory -j4 $(addprefix test-,$(PARTS) rest)

# What waits and what computes is spread over the parts so that they take about as long as each other.
PARTS       := controllers runtime agent
controllers := $(addprefix tests/,api controllers models operator serving traffic)
runtime     := $(addprefix tests/,runtime gateway hostile teardown)
agent       := $(addprefix tests/,agent quickstarts sim up)
rest        := $(foreach part,$(PARTS),$(addprefix --ignore ,$($(part))))

# They start Python some hundred times: it is to remember what it has compiled.
test-%: export PYTHONDONTWRITEBYTECODE :=
test-%: $(VENV)/dev
	$(PYTHON) -m pytest -q $($*)

wheels: $(VENV)/build ## build the three distributions into dist/: pilotage, pilotage-harbor, pilotage-sim
	rm -rf dist
	for each in $(dir $(DISTRIBUTIONS)); do \
	  (cd $$each && $(abspath $(PYTHON)) -m hatchling build --target wheel --directory $(CURDIR)/dist) || exit 1; done

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/pilotage/__init__.py)
IMAGE   := pilotage:$(VERSION)
BASE    := python:3.11-slim
# The first of those that work here; one that is installed may have no daemon.
BUILDER  = $(firstword $(foreach each,docker podman buildah,$(shell $(each) info >/dev/null 2>&1 && echo $(each))))

image: wheels ## build the operator's image with docker, podman or buildah (BUILDER), as IMAGE=name:tag on BASE=image with Python
	@test -n "$(BUILDER)" || { echo "make image needs docker, podman or buildah, and none of them works here."; exit 1; }
	$(BUILDER) build --build-arg BASE=$(BASE) --tag $(IMAGE) --file Containerfile .

image-test: $(VENV)/dev ## build the image and run its operator on a real control plane, and install the wheels: needs root, buildah, mmdebstrap
	$(PYTHON) -m pytest -q -s -o timeout=1200 tests/operator/whole_installation.py

simulate: $(VENV)/dev ## play every single fault of all teardowns and endpoints, and every pair on the smallest and on the informer, some on rollouts and experiments: `make test` plays samples
	$(PYTHON) -m pilotage_sim explore teardown teardown-endpoint teardown-namespace teardown-recreated teardown-stuck \
	  teardown-denied teardown-owner teardown-operator teardown-definition
	$(PYTHON) -m pilotage_sim explore teardown-by-operator teardown-endpoint-by-operator teardown-recreated-by-operator \
	  teardown-stuck-by-operator teardown-denied-by-operator teardown-owner-by-operator teardown-namespace-by-caches \
	  teardown-operator-by-caches teardown-definition-by-caches endpoint endpoint-gateway rollout experiment
	$(PYTHON) -m pilotage_sim explore teardown informer --pairs
	$(PYTHON) -m pilotage_sim explore rollout experiment --pairs --plans 200

load: $(VENV)/dev ## 50 clients through 20 redeploys, canaries, an experiment, a delete and a dead agent: `make test` has 8 clients and 2 redeploys
	PILOTAGE_CLIENTS=50 PILOTAGE_REDEPLOYS=20 $(PYTHON) -m pytest -q -s -o timeout=900 \
	  tests/up/test_under_load.py tests/up/test_canary_under_load.py

faults: $(VENV)/dev ## every fault of one machine on a real `pilotage up`: parts killed, frozen, starved, the clock set; `make test` plays a sample
	$(PYTHON) -m faults

matrix: $(VENV)/dev ## write every hostile value into every field of our kinds: `make test` has a quarter of the values
	PILOTAGE_MATRIX=whole $(PYTHON) -m pytest -q -o timeout=900 tests/hostile

fuzz: $(VENV)/fuzz ## give every parser of untrusted bytes 20 minutes of inputs that find new branches: `make test` plays the seeds
	$(PYTHON) -m fuzz

lint: $(VENV)/dev ## check format, style and types
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m mypy

bench: $(VENV)/bench ## measure against the other clients and kopf, side by side
	$(PYTHON) -m bench

experiments: $(VENV)/dev ## end experiments under load beside Argo Rollouts, and count failed requests: half an hour
	$(PYTHON) -m bench.experiments

conformance: $(VENV)/dev ## run Kubernetes's own conformance specs against the real API server and against harbor
	$(PYTHON) -m conformance

kube: $(VENV)/dev ## get the control plane now: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok
	$(PYTHON) -m controlplane build

field: $(VENV)/dev ## build the programs of others that tests and benchmarks run: Contour, KServe's manager, Helm, a registry, Argo Rollouts
	$(PYTHON) -m field contour kserve helm registry argo-rollouts

manifests: $(VENV)/dev ## write deploy/crds, deploy/chart, the generated table of the catalogue and docs/layers.svg from the code
	$(PYTHON) -m deploy
	$(PYTHON) -m pilotage.catalogue.generate
	$(PYTHON) -m docs.layers

COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --custom-compile-command 'make lock'

lock: ## compile requirements/*.txt: dev from pilotage-sim, which needs all distributions; the others from subsets (needs uv)
	for group in dev bench fuzz; do $(COMPILE) packages/sim/pyproject.toml --group dev --group $$group \
	  --no-emit-package pilotage --no-emit-package pilotage-harbor -o requirements/$$group.txt; done
	$(COMPILE) --constraint requirements/dev.txt --group build -o requirements/build.txt
	$(COMPILE) --constraint requirements/dev.txt pyproject.toml --extra buckets -o requirements/image.txt

help: ## show these lines
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

clean: ## remove the environment and what tools cached here; the built control plane stays (see `make kube`)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .fuzz dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/%: requirements/%.txt $(DISTRIBUTIONS)
ifdef UV
	uv venv --quiet --allow-existing $(VENV)
	uv pip install --quiet --python $(PYTHON) --require-hashes -r $<
	uv pip install --quiet --python $(PYTHON) --no-deps --no-build-isolation $(EDITABLE)
else
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --require-hashes -r $<
	$(PYTHON) -m pip install --quiet --no-deps --no-build-isolation $(EDITABLE)
endif
	@touch $@
