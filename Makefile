# Two commands do everything: `make run` serves the app, `make test` runs the whole suite.
# They need Python 3.11 or newer with `venv`, and make. Everything else is fetched into .venv.
#
#   make run  PORT=9000 ADDRESS=0.0.0.0      port and address of the app (8501 on the loopback interface)
#   make run  LAKEVIEW_ROOTS=/data/lake      folders whose tables may be opened (lakeview/model/config.py tells the rest)
#   make run  LAKEVIEW_DEMO=/data/demo       where the demo lake lies (demo-lake)
#   make test PYTHON=python3.12              the interpreter that the virtual environment is made with

PORT          ?= 8501
ADDRESS       ?= 127.0.0.1
LAKEVIEW_DEMO ?= demo-lake
VENV          ?= .venv
PYTHON        ?=
PYTEST_FLAGS  ?=
FUZZ_SECONDS  ?= 60
SECONDS       ?= 60

export LAKEVIEW_DEMO
# Queries, Spark and the tests start many processes that import the package: compiled once, it loads in half the time.
unexport PYTHONDONTWRITEBYTECODE
# The tests' own processes fill the cores: polars' threads would only wait for each other, an eighth of all time.
tests-and-types fast all-tests: export POLARS_MAX_THREADS = 1
# They make and remove small files all the time, and flush many: in memory, if it has 2 GB to spare, none waits for a disk.
ifeq ($(TMPDIR),)
ifneq ($(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000'),)
tests-and-types fast all-tests: export TMPDIR = /dev/shm
endif
endif

PY      := $(VENV)/bin/python
PYTEST  := $(PY) -m pytest -n auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder
PIP     := $(PY) -m pip install --quiet --disable-pip-version-check
SOURCES := $(wildcard app.py lakeview pyspark_lakeview pages tests benches .ci/*.py)
PEERS   := $(patsubst tests/environments/%.txt,$(VENV)/%.stamp,$(wildcard tests/environments/*.txt))
FAST    := not breadth and not golden and not app and not slow and not spark and not browser

.PHONY: run test check demo bench azurite pins clean install install-test chromium format lint types contracts tests-and-types fast all-tests breadth fuzz simulate stream-kills help
.NOTPARALLEL:
.DEFAULT_GOAL := help

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile
	@echo "Also: make check (format, lint, types, contracts, fast tests), demo, bench, breadth, azurite, fuzz, simulate, stream-kills, pins, clean."

# ------------------------------------------------------------------------------------------- the app

# Where LAKEVIEW_ROOTS says which tables may be opened, the demo lake is none of them unless its folder is named too.
run: install $(if $(LAKEVIEW_ROOTS),,demo)
	@$(PY) .ci/ready.py "$(ADDRESS)" "$(PORT)" & exec $(PY) -m streamlit run app.py --server.port "$(PORT)" \
		--server.address "$(ADDRESS)" --server.headless true --browser.gatherUsageStats false

# The lake is built once: its mark is written last, and a folder takes its place only when it is whole.
demo: install
	@test -e "$(LAKEVIEW_DEMO)/.lakeview-demo" || $(PY) -m lakeview.demo

# ----------------------------------------------------------------------------------------- the tests

test: install-test chromium format lint tests-and-types

# Mypy is one process, for which the other cores would wait: it checks the types beside the tests, and what it says comes
# last. Where no test is compiled with its assertions yet, all are once, or each worker does that (a few that changed
# since are compiled while they are collected, in less time than all are collected once more). The import contracts are
# among them.
tests-and-types:
	@mkdir -p build
	@$(PY) -m mypy $(SOURCES) >build/types.txt 2>&1 & types=$$!; \
	$(if $(wildcard tests/*/__pycache__/*-pytest-*.pyc),,$(PY) -m pytest --collect-only -q >/dev/null 2>&1;) \
	$(PYTEST) -m "not breadth" $(PYTEST_FLAGS); tests=$$?; \
	wait $$types; types=$$?; cat build/types.txt; test $$tests$$types = 00

check: install-test format lint types fast

format:
	$(PY) -m ruff format --check $(SOURCES)

lint:
	$(PY) -m ruff check $(SOURCES)

types:
	$(PY) -m mypy $(SOURCES)

contracts:
	$(VENV)/bin/lint-imports

fast:
	$(PYTEST) -m "$(FAST)" $(PYTEST_FLAGS)

# Fast tests first; Spark stays on one worker, and so does each file of browser tests (tests/conftest.py says how).
all-tests:
	$(PYTEST) -m "not breadth" $(PYTEST_FLAGS)

# The same promises once more, on the formats, pages and schedules that the suite leaves out.
breadth: install-test chromium
	$(PY) -m pytest -m breadth $(PYTEST_FLAGS)

chromium: install-test
	@sh .ci/chromium "$(PY)"

bench: install-test demo
	@set -e; for bench in $(sort $(wildcard benches/bench_*.py)); do echo "== $$bench"; PYTHONPATH=. $(PY) "$$bench"; done

# Three writers and up to two faults by chance, for SECONDS. A schedule that violates a law is printed, and stops the run.
simulate: install-test
	$(PY) -m tests.simulation search --seconds $(SECONDS)

# A stream whose driver is killed at random moments, for SECONDS; rows that are lost or there twice stop the run.
stream-kills: install-test
	$(PY) -m tests.spark.stream_kills --seconds $(SECONDS) --folder build/stream-kills

# Each target for FUZZ_SECONDS; what breaks one is kept in fuzz-findings/ and stops the run.
fuzz: install-test
	$(PY) -m tests.fuzz.run all --seconds $(FUZZ_SECONDS)

# ------------------------------------------------------------------------------------- the environment

install: $(VENV)/run.stamp

install-test: $(VENV)/test.stamp

$(VENV)/run.stamp: requirements.txt
	@sh .ci/venv "$(VENV)" "$(PYTHON)"
	@echo "Installing the packages of requirements.txt into $(VENV) (once; a few minutes on a slow line)"
	@$(PIP) -r requirements.txt
	@touch $@

$(VENV)/test.stamp: requirements-test.txt $(VENV)/run.stamp $(PEERS) $(VENV)/spark35-tables.stamp $(VENV)/spark.jsa.stamp | $(VENV)/azurite.stamp
	@echo "Installing the packages of requirements-test.txt into $(VENV)"
	@$(PIP) -r requirements.txt -r requirements-test.txt
	@touch $@

# Peers whose own requirements contradict ours: an environment each, inside ours (tests/environments/ says what for).
$(VENV)/%.stamp: tests/environments/%.txt $(VENV)/run.stamp
	@sh .ci/venv "$(VENV)/$*" "$(PYTHON)"
	@echo "Installing the packages of $< into $(VENV)/$*"
	@$(VENV)/$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# What the reference implementation of Iceberg wrote and what it reads there: it needs nothing of ours, and a minute.
$(VENV)/spark35-tables.stamp: tests/iceberg/spark35_tables.py $(VENV)/spark35.stamp
	@echo "Writing the tables of Spark 3.5 into $(VENV)/spark35-tables"
	@rm -rf $(VENV)/spark35-tables
	@$(VENV)/spark35/bin/python $< $(VENV)/spark35-tables >$(VENV)/spark35-tables.log 2>&1 || \
		{ cat $(VENV)/spark35-tables.log; exit 1; }
	@touch $@

# Spark's classes as JVMs have them in memory once they are loaded: each JVM of the tests starts in half its CPU time.
$(VENV)/spark.jsa.stamp: tests/spark/class_archive.py $(VENV)/run.stamp
	@echo "Writing an archive of Spark's classes into $(VENV)"
	@rm -f $(VENV)/spark.jsa
	@$(PY) -m tests.spark.class_archive $(VENV)/spark.jsa || echo "Spark's JVMs start without an archive of their classes"
	@touch $@

# Microsoft's emulator of Azure Blob Storage, for tests/storage: by npm where there is one, and the tests say so where it
# is missing.
azurite: $(VENV)/run.stamp
	@npm install --loglevel error --no-audit --no-fund --fetch-retries 1 --fetch-timeout 30000 --prefix $(VENV)/azurite azurite@3.37.0

$(VENV)/azurite.stamp: $(VENV)/run.stamp
	@! command -v npm >/dev/null || $(MAKE) --no-print-directory azurite || echo "npm gave no azurite: try make azurite"
	@touch $@

# One joint resolution of the ranges in pyproject.toml, written to requirements.txt and requirements-test.txt.
pins:
	@sh .ci/venv build/pins "$(PYTHON)"
	@build/pins/bin/python .ci/pins.py

# Only what stands at its usual place inside this folder: a lake elsewhere is yours.
clean:
	rm -rf .venv demo-lake build dist test-results fuzz-findings spark-warehouse metastore_db derby.log
	rm -rf .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find app.py lakeview pyspark_lakeview pages tests benches -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
