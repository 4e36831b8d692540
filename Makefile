# Every target sets up what it needs in .venv, from nothing: a bare clone, Python >= 3.11 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BENCH_VENV := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready

.PHONY: help demo test check golden bench clean

help:
	@echo "make demo     train a small model on two CPU ranks, capture it, report where the time went"
	@echo "make test     all checks and tests"
	@echo "make check    format, lint, types, import layers"
	@echo "make golden   renew the expected reports of fixtures/ (read the diff before committing)"
	@echo "make bench    time the loader against other tools"

$(READY): pyproject.toml constraints-dev.txt tools/setup_env.sh
	sh tools/setup_env.sh $(VENV) $(PYTHON) dev
	touch $@

$(BENCH_READY): pyproject.toml constraints-dev.txt tools/setup_env.sh
	sh tools/setup_env.sh $(BENCH_VENV) $(PYTHON) bench
	touch $@

demo: $(READY)
	$(BIN)/traceparse demo --out demo-out

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/pytest --cov --cov-report=term-missing:skip-covered

golden: $(READY)
	$(BIN)/python tools/make_fixtures.py --golden

bench: $(BENCH_READY)
	$(BENCH_VENV)/bin/python tools/bench.py load

clean:
	rm -rf $(VENV) $(BENCH_VENV) demo-out bench-out build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
