# Every target sets itself up from nothing: Python 3.11+ and make are all it takes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo-ready
SERVE_READY := $(VENV)/.serve-ready
PORT ?= 8075

.PHONY: help demo serve screenshots test test-pythons torture lint format bench bench-all load load-memory load-page audit-dependencies docs dist release-check clean

help:  ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(DEMO_READY): $(BIN)/python pyproject.toml
	@echo 'Installing, which takes a few minutes the first time ...'
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(SERVE_READY): $(BIN)/python pyproject.toml
	@echo 'Installing, which takes a few minutes the first time ...'
	$(BIN)/python -m pip install --quiet --editable '.[demo,serve]'
	@touch $@

$(READY): $(BIN)/python pyproject.toml requirements-dev.txt
	@echo 'Installing, which takes a few minutes the first time ...'
	$(BIN)/python -m pip install --quiet --requirement requirements-dev.txt
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(DEMO_READY)  ## Recognise characters, and see in pictures which answers to trust
	$(BIN)/holue demo

serve: $(SERVE_READY)  ## Serve the demo's gallery over HTTP; PORT=8075 by default
	$(BIN)/holue serve --demo --port $(PORT)

screenshots: $(READY)  ## Pictures of every screen of the page, for the documentation; needs a Chromium
	$(BIN)/python tests/service/page/screenshots.py

test: $(READY)  ## Lint, types, layers, doctests, examples and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/service/page/chromium.py
	$(BIN)/python -m pytest -n 2

test-pythons: $(READY)  ## The tests on each of Python 3.11, 3.12 and 3.13 that this machine has
	$(BIN)/nox --session tests

torture: $(READY)  ## Kill writers and services, lose power and nodes of a cluster, send ten thousand odd requests (hours)
	$(BIN)/python tests/torture/kill_store.py --times 1000
	$(BIN)/python tests/torture/kill_store.py --times 1000 --home postgres --longest 2
	$(BIN)/python tests/torture/lose_power.py --changes 200
	$(BIN)/python tests/torture/kill_service.py --times 300
	$(BIN)/python tests/torture/kill_service.py --times 100 --home postgres
	$(BIN)/python tests/torture/lose_nodes.py --kills 100
	HOLUE_API_CASES=120 $(BIN)/python -m pytest tests/service/http/test_description.py --timeout 3600 -rP

lint: $(READY)  ## Style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## Rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## Measure speed and memory into runs/ (about half an hour on two idle processors)
	mkdir -p runs
	$(BIN)/holue bench --sections exact,other-costs,compressed,faces --out runs/speed.json --page runs/speed.md --chart runs
	$(BIN)/holue bench --sections store,live,peers,cluster --rounds 5 --out runs/store.json --page runs/store-speed.md

bench-all: $(READY)  ## The same with approximate evidence up to ten million subjects, and a whole evaluation (over half an hour)
	mkdir -p runs
	$(BIN)/holue bench --sections all --out runs/speed.json --page runs/speed.md --chart runs

load: $(READY)  ## Measure the service under load, beside FAISS and pgvector, into runs/ (about ten minutes)
	$(BIN)/python -m tests.load.run --out runs/load.json --page runs/load.md

load-memory: $(READY)  ## Watch the service's memory over 100 000 requests (takes several minutes)
	$(BIN)/python -m tests.load.memory --out runs/load-memory.json

load-page: $(READY)  ## Make docs/service-load.md from what make load and make load-memory measured
	$(BIN)/python -m tests.load.report

audit-dependencies: $(READY)  ## Look for known vulnerabilities of what is installed; asks pypi.org, and fails where it cannot
	$(BIN)/pip-audit --strict --skip-editable

docs: $(READY)  ## Build the documentation into site/
	$(BIN)/mkdocs build --strict

dist: $(READY)  ## Build the source distribution and the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

release-check: dist  ## Build, check, install the wheel into a fresh environment and use it; publishes nothing
	$(BIN)/python -m pytest tests/test_distribution.py
	$(BIN)/nox --session wheel

clean:  ## Remove what the other commands made
	rm -rf $(VENV) .nox dist site demo demo-service .pytest_cache .mypy_cache .ruff_cache
