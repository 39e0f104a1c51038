# Lexiscope from a clone. `make` alone lists what there is.
# Another Python: make setup PYTHON=python3.12    Some of the tests: make test ARGS="-k pairs"
PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/.demo-ready# Lexiscope is installed with what the demo needs
READY := $(VENV)/.ready# and with what tests, lint and bench need
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
CODE := $(wildcard app lexiscope precompute tests benchmarks docs examples)
# Processes that take one file of tests after the other, the longest files first (tests/conftest.py says how many)
CORES := --numprocesses auto --dist loadfile --no-loadscope-reorder
export PYTHONDONTWRITEBYTECODE :=# else each of the many processes that tests start would compile all modules anew

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all quick lint docs bench clean

help: ## list these targets
	@echo "Lexiscope: read a transformer's weights as words."
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with Lexiscope and all that these targets need (each begins with its part of it)
	@echo "$(VENV) is ready: $(BIN)/lexiscope --help"

demo: $(DEMO_READY) ## fetch the demo model, build its index, serve the explorer on it
	@echo "Demo: fetching the demo model, building its index and serving it (Ctrl-C ends it)"
	@$(BIN)/lexiscope demo $(ARGS)

test: $(READY) ## run the tests, on all cores; panels against four families of models
	@echo "Running the tests"
	@$(BIN)/python -m pytest $(CORES) $(ARGS)

test-all: $(READY) ## run all tests, panels against every family: after a change to precompute/live or weights/architectures
	@echo "Running all tests"
	@$(BIN)/python -m pytest $(CORES) -m "" $(ARGS)

quick: $(READY) ## run the tests that take less than a minute together
	@echo "Running the quick tests"
	@$(BIN)/python -m pytest $(CORES) -m "not slow and not browser and not demo and not ray and not all_families" $(ARGS)

lint: $(READY) ## check style, types and which room imports which: ruff, mypy --strict, import-linter
	@echo "Checking style, types and imports with ruff, mypy --strict and import-linter"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: $(READY) ## write the generated parts of docs/ and build its site into build/docs
	@$(BIN)/python -m docs.generate
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "build/docs/index.html is the first page"

bench: $(READY) ## measure speed and memory, one line per figure, and write them into docs/speed.md
	@echo "Measuring speed and memory: name, measured, bound, ok or short"
	@$(BIN)/python -m benchmarks --write $(ARGS)

clean: ## remove .venv and caches; models and indexes in data/ stay
	@echo "Removing $(VENV) and caches (data/ stays)"
	@rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info
	@$(if $(CODE),find $(CODE) -type d -name __pycache__ -prune -exec rm -rf {} +)

# An environment that works and is new enough is kept and brought up to date; any other is made anew.
define install
	@echo "Setting up $(VENV) with lexiscope[$(1)] (torch is large: the first time takes minutes)"
	@$(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null || { \
	  $(PYTHON) -c '$(NEW_ENOUGH)' 2>/dev/null || { \
	    echo "Lexiscope needs Python 3.11 or newer; \`$(PYTHON) --version\` says: $$($(PYTHON) --version 2>&1 | tail -n 1)" >&2; \
	    echo "Name one that is: make setup PYTHON=python3.11" >&2; exit 1; }; \
	  $(PYTHON) -m venv --clear $(VENV) || { \
	    echo "$(PYTHON) could not make $(VENV); on Debian and Ubuntu the package python3-venv is needed." >&2; exit 1; }; }
	@$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[$(1)]'
endef

$(DEMO_READY): pyproject.toml constraints.txt
	$(call install,precompute)
	@touch $@

$(READY): pyproject.toml constraints.txt
	$(call install,dev)
	@touch $(DEMO_READY) $@ # dev has all of precompute
