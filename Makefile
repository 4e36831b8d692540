# Every target sets up what it needs in .venv, from nothing: a bare clone, Python >= 3.11 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_VENV := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready
HTA_VENV := .venv-hta
HTA_READY := $(HTA_VENV)/.ready
HTA05_VENV := .venv-hta05
HTA05_READY := $(HTA05_VENV)/.ready
FUZZ_VENV := .venv-fuzz
FUZZ_READY := $(FUZZ_VENV)/.ready
SECONDS ?= 60

.PHONY: help demo test check golden bench test-hta damage fuzz fuzz-native hostile clean

help:
	@echo "make demo     train a small model on two CPU ranks, capture it, report where the time went"
	@echo "make test     all checks and tests"
	@echo "make check    format, lint, types, import layers"
	@echo "make golden   renew the expected reports of fixtures/ (read the diff before committing)"
	@echo "make bench    time loading and analyzing, against other tools too: ten minutes"
	@echo "make test-hta the HTA bridge, with either of HTA's distributions: two environments"
	@echo "make damage   all fifty kinds of damage, and what is made of each"
	@echo "make fuzz     SECONDS=600: mutate stored traces for so long; nothing but a report or a refusal may come out"
	@echo "make fuzz-native  SECONDS=600: the native scanner under AddressSanitizer, against Python's JSON reader"
	@echo "make hostile  bombs and claims past belief: seconds and memory of each"

$(READY): pyproject.toml constraints-dev.txt tools/setup_env.sh traceparse/ingest/_scanner.c
	sh tools/setup_env.sh $(VENV) $(PYTHON) dev
	touch $@

$(BENCH_READY): pyproject.toml constraints-dev.txt tools/setup_env.sh traceparse/ingest/_scanner.c
	sh tools/setup_env.sh $(BENCH_VENV) $(PYTHON) bench
	touch $@

$(HTA_READY): pyproject.toml constraints-dev.txt tools/setup_env.sh traceparse/ingest/_scanner.c
	sh tools/setup_env.sh $(HTA_VENV) $(PYTHON) hta
	touch $@

$(HTA05_READY): pyproject.toml constraints-dev.txt tools/setup_env.sh traceparse/ingest/_scanner.c
	sh tools/setup_env.sh $(HTA05_VENV) $(PYTHON) hta05
	touch $@

$(FUZZ_READY): pyproject.toml constraints-dev.txt tools/setup_env.sh traceparse/ingest/_scanner.c
	sh tools/setup_env.sh $(FUZZ_VENV) $(PYTHON) fuzz
	touch $@

demo: $(READY)
	$(BIN)/traceparse demo --out demo-out

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/pytest --numprocesses auto --dist loadfile --cov --cov-report=term-missing:skip-covered

golden: $(READY)
	$(BIN)/python tools/make_fixtures.py --golden

bench: $(BENCH_READY)
	$(BENCH_VENV)/bin/python tools/bench.py all

test-hta: $(HTA_READY) $(HTA05_READY)
	$(HTA_VENV)/bin/python -m pytest -m hta tests/bridge tests/cli/test_analyze.py
	$(HTA05_VENV)/bin/python -m pytest -m hta tests/bridge tests/cli/test_analyze.py

damage: $(READY)
	$(BIN)/python tools/damage.py --table

fuzz: $(FUZZ_READY)
	$(FUZZ_VENV)/bin/python tools/fuzz.py --seconds $(SECONDS)

fuzz-native: $(READY)
	$(BIN)/python tools/fuzz_native.py --seconds $(SECONDS)

hostile: $(READY)
	$(BIN)/python tools/hostile.py

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(HTA_VENV) $(HTA05_VENV) $(FUZZ_VENV) demo-out bench-out fuzz-out build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
