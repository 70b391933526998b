# Few targets, each with one task. Everything is installed into .venv, and nothing outside of this folder is changed.
SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN := .venv/bin
ARGS ?=
SEEDS ?= 100
JOBS ?= 3
FIRST ?= 1
KILLS ?= 200
MESSAGES ?= 10000000
MINUTES ?= 10
FUZZ_MINUTES ?= 2
TOOLS = promtool prometheus zsh fish
FAILING ?= failing-seeds.jsonl
PURE_TESTS = $(wildcard tests/model tests/wire tests/engine tests/replication tests/node tests/checks)

.PHONY: help run native cluster test quick check format bench bench-deep simulate nightly fuzz chaos clients dist ui-test tools-test docs spark-demo bench-spark clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: .venv/.installed  ## serve SQS on http://127.0.0.1:9324; ARGS adds options, such as ARGS="--port 9400"
	@$(BIN)/python scripts/native.py --start
	@exec $(BIN)/python -m elasticq server $(ARGS)

native: .venv/.installed-native  ## compile the hot path in place, for make run; needs a C compiler and a minute or two
	@$(BIN)/python scripts/native.py

cluster: .venv/.installed  ## start three local members with SQS on 9324, 9334 and 9344; ARGS adds options for all of them
	@exec $(BIN)/python scripts/cluster.py $(ARGS)

test: .venv/.installed-test  ## run all tests in pure Python, then those of the hot path compiled, if there is a C compiler; JOBS=n at a time
	@$(BIN)/python scripts/native.py --where-possible
	ELASTICQ_PURE=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)
	$(BIN)/python scripts/test_compiled.py -n $(JOBS) --dist worksteal $(ARGS)

quick: .venv/.installed-test  ## run the tests of the parts without I/O (engine, replication, protocols), in less than a minute
	$(BIN)/python -m pytest -q $(PURE_TESTS) $(ARGS)

check: .venv/.installed-test  ## check lint, format, words, strict types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/words.py
	$(BIN)/python -m mypy --strict elasticq
	$(BIN)/lint-imports --no-cache

format: .venv/.installed-test  ## rewrite the sources in this project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.installed  ## measure this machine next to a bare echo server in the same run
	$(BIN)/python scripts/bench --backlog 1000 $(ARGS)

bench-deep: .venv/.installed  ## measure memory and speed with MESSAGES=10000000 stored; takes minutes and gigabytes of disk
	$(BIN)/python scripts/bench deep --messages $(MESSAGES) $(ARGS)

simulate: .venv/.installed  ## simulate clusters with faults: SEEDS=n seeds from FIRST=s
	$(BIN)/python -m elasticq sim --seeds $(SEEDS) --first $(FIRST) $(ARGS)

# share PERCENT OPTIONS simulates one kind of cluster with that part of the seeds, from a random first seed.
nightly: .venv/.installed-test  ## simulate SEEDS=n fresh seeds (failing ones go into FAILING=file); run all tests in a random order, fuzz, chaos, all clients, and every version of Spark
	@share() { $(BIN)/python -m elasticq sim --first random --processes 0 --quiet --coverage --failing $(FAILING) --seeds $$(( $(SEEDS) * $$1 / 100 + 1 )) $${@:2}; }; \
	status=0; share 40 --members 3 || status=1; share 30 --members 5 || status=1; share 5 --members 7 || status=1; \
	share 10 --members 1 || status=1; share 10 --members 3 --mixed || status=1; share 5 --members 5 --mixed || status=1; exit $$status
	$(MAKE) test ARGS="--shuffle $$RANDOM"
	$(MAKE) fuzz MINUTES=$(FUZZ_MINUTES)
	$(MAKE) chaos KILLS=$(KILLS) MINUTES=$(MINUTES) FIRST=$$RANDOM
	$(MAKE) clients ARGS="--heavy --allow-missing"
	$(BIN)/python scripts/spark_versions.py

fuzz: .venv/.installed-test  ## fuzz each parser of arriving bytes for MINUTES=m, guided by coverage; installs atheris; JOBS=n at a time
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	$(BIN)/python scripts/fuzz.py all --minutes $(MINUTES) --jobs $(JOBS) $(ARGS)

chaos: .venv/.installed-test  ## check servers, clusters and Spark jobs under real faults: KILLS=n kills, MINUTES=m for each row, from seed FIRST=s
	$(BIN)/python -m pytest -m chaos tests/system tests/http tests/spark tests/sim
	$(BIN)/python scripts/chaos --kills $(KILLS) --pauses $(KILLS) --minutes $(MINUTES) --seed $(FIRST) $(ARGS)
	$(BIN)/python scripts/chaos cluster --clocks --minutes $(MINUTES) --seed $(FIRST)
	$(BIN)/python scripts/clients.py --restarts 10 --allow-missing
	$(BIN)/python scripts/rest_conformity.py --allow-missing

clients: .venv/.installed-test  ## test unmodified client libraries against a server and a cluster; ARGS="celery --only cluster"
	$(BIN)/python scripts/clients.py $(ARGS)

dist: .venv/.installed-dist  ## build wheels, sdist, the single file dist/elasticq.pyz, and the zip for Spark's --py-files
	$(BIN)/python scripts/dist.py $(ARGS)

ui-test: .venv/.installed-test  ## test the operators' page in a real browser, with pictures in build/ui; installs Playwright, and Chromium if it may
	@command -v chromium chromium-browser >/dev/null || (apt-get update -q && apt-get install -y -q chromium) || { echo "install chromium first, as root: apt-get install chromium"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[ui]'
	$(BIN)/python -m pytest -m ui tests/system/ui $(ARGS)

tools-test: .venv/.installed-test  ## test alerts, dashboard and completion with promtool, prometheus, zsh and fish; installs them if it may
	@for tool in $(TOOLS); do command -v $$tool >/dev/null || { apt-get update -q && apt-get install -y -q --no-install-recommends prometheus zsh fish; break; }; done; \
	for tool in $(TOOLS); do command -v $$tool >/dev/null || { echo "install $$tool first, as root: apt-get install prometheus zsh fish"; exit 1; }; done
	$(BIN)/python -m pytest -m tools tests $(ARGS)

docs: .venv/.installed-test  ## build the documentation site into site/; a warning fails
	$(BIN)/python -m mkdocs build --strict --quiet

spark-demo: .venv/.installed-spark  ## run an example on real Spark: events through a queue into Parquet; needs no Java of your own
	$(BIN)/python examples/spark/events_to_parquet.py $(ARGS)

bench-spark: .venv/.installed-spark  ## measure a message's cost in Spark next to a plain loop with the same client
	$(BIN)/python scripts/bench spark $(ARGS)

clean:  ## remove .venv and every cache
	rm -rf .venv .venv-clients build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf elasticq/_native elasticq/native.sha256
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp records what the .venv contains: serving needs few packages, testing many.
.venv/bin/python:
	@scripts/make_venv .venv

.venv/.installed: setup.cfg pyproject.toml requirements.lock | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

.venv/.installed-native: setup.cfg pyproject.toml | .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[speed,native]'
	@touch $@

.venv/.installed-dist: setup.cfg pyproject.toml | .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[speed,hocon,native,dist]'
	@touch $@

.venv/.installed-spark: setup.cfg pyproject.toml | .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[speed,spark]'
	@touch $@

.venv/.installed-test: setup.cfg pyproject.toml | .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[speed,spark,hocon,otel,test,docs,native,dist,dev]'
	@touch $@
