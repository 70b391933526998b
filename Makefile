# Few targets, each one duty. Everything is installed into .venv; nothing else is touched.
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
FAILING ?= failing-seeds.jsonl
PURE_TESTS = $(wildcard tests/model tests/wire tests/engine tests/replication tests/node tests/checks)

.PHONY: help run native cluster test quick check format bench bench-deep simulate nightly fuzz chaos clients dist ui-test docs spark-demo bench-spark clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: .venv/.installed  ## serve SQS on http://127.0.0.1:9324, with ElasticMQ's files too; more options by ARGS="--port 9400"
	@exec $(BIN)/python -m elasticq server $(ARGS)

native: .venv/.installed-native  ## compile the hot path in place, which takes a minute or two and a C compiler; make run then uses it
	@$(BIN)/python scripts/native.py

cluster: .venv/.installed  ## three local members: SQS on 9324, 9334 and 9344; options for all of them by ARGS
	@exec $(BIN)/python scripts/cluster.py $(ARGS)

test: .venv/.installed-test  ## all tests in pure Python, then the hot path's compiled, where a C compiler is; JOBS=n at a time
	@$(BIN)/python scripts/native.py --where-possible
	ELASTICQ_PURE=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)
	$(BIN)/python scripts/test_compiled.py -n $(JOBS) --dist worksteal $(ARGS)

quick: .venv/.installed-test  ## tests of the parts without I/O (engine, replication, protocols), under a minute
	$(BIN)/python -m pytest -q $(PURE_TESTS) $(ARGS)

check: .venv/.installed-test  ## lint, format, strict types, import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/words.py
	$(BIN)/python -m mypy --strict elasticq
	$(BIN)/lint-imports --no-cache

format: .venv/.installed-test  ## rewrite the sources in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.installed  ## figures of this machine beside a bare echo of the same run
	$(BIN)/python scripts/bench --backlog 1000 $(ARGS)

bench-deep: .venv/.installed  ## memory and speed with MESSAGES=10000000 stored; takes minutes and gigabytes of disk
	$(BIN)/python scripts/bench deep --messages $(MESSAGES) $(ARGS)

simulate: .venv/.installed  ## seeded clusters with faults: SEEDS=n from FIRST=s
	$(BIN)/python -m elasticq sim --seeds $(SEEDS) --first $(FIRST) $(ARGS)

# Clusters of three, five and seven, a member alone, other bounds: by their share of the seeds, each from a number of its own.
nightly: .venv/.installed-test  ## fresh seeds: SEEDS=n in all, those that fail into FAILING=file; all tests in a fresh order; make fuzz; make chaos; make clients, heavy ones too
	@share() { $(BIN)/python -m elasticq sim --first random --processes 0 --quiet --coverage --failing $(FAILING) --seeds $$(( $(SEEDS) * $$1 / 100 + 1 )) $${@:2}; }; \
	status=0; share 40 --members 3 || status=1; share 30 --members 5 || status=1; share 5 --members 7 || status=1; \
	share 10 --members 1 || status=1; share 10 --members 3 --mixed || status=1; share 5 --members 5 --mixed || status=1; exit $$status
	$(MAKE) test ARGS="--shuffle $$RANDOM"
	$(MAKE) fuzz MINUTES=$(FUZZ_MINUTES)
	$(MAKE) chaos KILLS=$(KILLS) MINUTES=$(MINUTES) FIRST=$$RANDOM
	$(MAKE) clients ARGS="--heavy --allow-missing"

fuzz: .venv/.installed-test  ## MINUTES=m for each parser of what arrives: inputs guided by coverage, by atheris, which it installs; JOBS=n at a time
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	$(BIN)/python scripts/fuzz.py all --minutes $(MINUTES) --jobs $(JOBS) $(ARGS)

chaos: .venv/.installed-test  ## kill -9 a server, damage its disk, kill Spark's jobs KILLS=n times each, break and besiege clusters for MINUTES=m, from seed FIRST=s; judge
	$(BIN)/python -m pytest -m chaos tests/system tests/http tests/spark tests/sim
	$(BIN)/python scripts/chaos --kills $(KILLS) --pauses $(KILLS) --minutes $(MINUTES) --seed $(FIRST) $(ARGS)
	$(BIN)/python scripts/chaos cluster --clocks --minutes $(MINUTES) --seed $(FIRST)
	$(BIN)/python scripts/clients.py --restarts 10 --allow-missing
	$(BIN)/python scripts/rest_conformity.py --allow-missing

clients: .venv/.installed-test  ## what people use, unmodified, against a server and a cluster; ARGS="celery --only cluster"
	$(BIN)/python scripts/clients.py $(ARGS)

dist: .venv/.installed-dist  ## wheel, sdist, one file to run, dist/elasticq.pyz, and what Spark takes by --py-files
	$(BIN)/python scripts/dist.py $(ARGS)

ui-test: .venv/.installed-test  ## the page in a real browser: installs Debian's Chromium, where it may, and Playwright; pictures in build/ui
	@command -v chromium chromium-browser >/dev/null || (apt-get update -q && apt-get install -y -q chromium) || { echo "install chromium first, as root: apt-get install chromium"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[ui]'
	$(BIN)/python -m pytest -m ui tests/system/ui $(ARGS)

docs: .venv/.installed-test  ## the documentation site, strictly, into site/
	$(BIN)/python -m mkdocs build --strict --quiet

spark-demo: .venv/.installed-spark  ## events through a queue into Parquet, on real Spark, without a Java of your own
	$(BIN)/python examples/spark/events_to_parquet.py $(ARGS)

bench-spark: .venv/.installed-spark  ## Spark's cost of a message beside a plain loop of the same client
	$(BIN)/python scripts/bench spark $(ARGS)

clean:  ## remove .venv and every cache
	rm -rf .venv .venv-clients build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -f elasticq/native.sha256
	find elasticq -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp tells what the .venv holds: serving needs little, testing a lot.
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
