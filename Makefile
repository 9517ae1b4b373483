# Every target makes the virtual environment it needs. Only Python 3.11 or newer is required, as `python3`
# or named by hand:  make test PYTHON=python3.12

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
BIN    := $(VENV)/bin
# For test-kernels: what to run under, and arguments of pytest, such as  TESTS="-m sensitive"
KERNELS ?= SkylakeX Haswell Prescott
TESTS   ?=
# For bench-peers: arguments, such as  PEERS="run --peers dynesty --problems banana --seeds 2"
PEERS   ?=

# One BLAS thread: timings are comparable and JOBS test processes do not fight over the cores.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-browser test-kernels test-bridges oldest lint types format bench bench-peers study docs outputs \
  release-check clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.stamp-cli  ## the evidence of a small classification problem, live, beside its known value
	$(BIN)/python examples/demo.py

test: lint types  ## lint, types, tests with coverage, doctests, examples
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-report=term -rs

test-browser: $(VENV)/.stamp-test  ## the pages in headless Chromium (Debian: apt-get install chromium)
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	  echo "no Chromium found; on Debian: apt-get install chromium" >&2; exit 1
	$(BIN)/python -m pytest -m browser tests/pages -rs

test-kernels: $(VENV)/.stamp-test  ## the tests under each OpenBLAS kernel of KERNELS that this CPU can run
	.ci/kernels "$(KERNELS)" $(BIN)/python -m pytest -n $(JOBS) $(TESTS)

test-bridges: $(VENV)/bridges/.stamp-test,bridges  ## the bridges to other packages, with all of these installed
	WSABI_BRIDGES=all $(VENV)/bridges/bin/python -m pytest -n $(JOBS) -rs tests/bridges \
	  tests/test_examples.py::test_example_of_a_bridge_runs_and_is_right

oldest: $(VENV)/oldest/.stamp-test  ## the tests with the oldest NumPy, SciPy and cma that are supported
	$(VENV)/oldest/bin/python -m pip install --quiet "numpy==1.26.*" "scipy==1.15.*" "cma==3.3.*"
	$(VENV)/oldest/bin/python -m pytest -n $(JOBS)

lint: $(VENV)/.stamp-test  ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.stamp-test  ## strict type check of the package, and of the examples
	$(BIN)/mypy
	$(BIN)/mypy --no-warn-return-any --exclude examples/bridges/ examples

format: $(VENV)/.stamp-test  ## rewrite the files as `make lint` wants them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.stamp-bench  ## speed and accuracy: every benchmarks/bench_*.py
	@$(call run_all,benchmarks/bench_*.py)

bench-peers: $(VENV)/.stamp-bench  ## other packages on the same problems, in their own environments: hours; goes on where it was
	$(BIN)/python -m benchmarks.peers $(PEERS)

study: $(VENV)/.stamp-bench  ## long statistical studies: every benchmarks/study_*.py
	@$(call run_all,benchmarks/study_*.py)

docs: $(VENV)/docs/.stamp-docs  ## the documentation site, in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/python -m mkdocs build
	@echo "open build/site/index.html"

outputs: $(VENV)/.stamp-test  ## run the examples, and write what they print into their pages
	$(BIN)/python .ci/example_outputs.py

release-check: $(VENV)/docs/.stamp-release  ## build sdist and wheel, install each in a clean environment, try them
	$(VENV)/docs/bin/python .ci/release_check.py

clean:  ## remove the virtual environment, caches and build products
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Run each script that matches, as a module so that benchmarks/ may share code; stop at the first failure.
define run_all
set -e; found=; for script in $(1); do \
  [ -e "$$script" ] || continue; found=yes; \
  module=$$(echo "$${script%.py}" | tr / .); \
  echo "== $$module"; $(BIN)/python -m "$$module"; \
done; \
[ -n "$$found" ] || { echo "no script matches $(1)" >&2; exit 1; }
endef

# .stamp-X: the package is installed, editable, with its extra X, as pyproject.toml now asks.
$(VENV)/oldest/.stamp-test: pyproject.toml
	$(MAKE) VENV=$(VENV)/oldest $@

$(VENV)/bridges/.stamp-test,bridges: pyproject.toml
	$(MAKE) VENV=$(VENV)/bridges $@

# The tools of the documentation and of a release have an environment of their own, in which the tests need not run.
$(VENV)/docs/.stamp-%: pyproject.toml
	$(MAKE) VENV=$(VENV)/docs $@

$(VENV)/.stamp-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	@touch $@

.PRECIOUS: $(VENV)/.stamp-%

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "no '$(PYTHON)' found: install Python 3.11 or newer," \
	  "or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "wsabi needs Python 3.11 or newer;" \
	  "'$(PYTHON)' is $$($(PYTHON) --version 2>&1). Name another: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
