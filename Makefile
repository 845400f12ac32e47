# Every target makes what it needs, from nothing: a virtual environment in .venv and the native library in it.
# A stamp stands for each step, so that the second time is quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := $(VENV)/.extras
NATIVE := $(VENV)/.native
BENCH := $(VENV)/.bench
RUST := Cargo.toml Cargo.lock $(shell find rust -name '*.rs')

.PHONY: demo test lint bench rust-test python-test format clean

## Show a recorded session decoded, and how fast that goes.
demo: $(NATIVE)
	@$(BIN)/claude-wire demo

## All tests: Rust and Python.
test: rust-test python-test

rust-test: | cargo
	cargo test --quiet

python-test: $(NATIVE)
	$(BIN)/pytest

## All linters and type checkers, warnings being errors.
lint: $(NATIVE) | cargo
	cargo fmt --check
	cargo clippy --quiet --all-targets -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright

## Speed, against json, orjson, pydantic and claude-agent-sdk. BENCH_ARGS="--benchmark-max-time=0.2" for a short look.
bench: $(BENCH)
	$(BIN)/pytest benches $(BENCH_ARGS)

format: $(NATIVE)
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) target dist python/claude_wire/_native

# --- what the targets stand on

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "claude_wire needs Python 3.10 or newer; say which: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Dependencies only; the package itself follows, so that a change in Rust does not ask the registry again.
$(EXTRAS): pyproject.toml tools/requirements.py | $(BIN)/python
	$(BIN)/python tools/requirements.py build base dev > $(VENV)/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r $(VENV)/requirements.txt
	@touch $@

$(NATIVE): $(EXTRAS) $(RUST) pyproject.toml | cargo
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

$(BENCH): $(NATIVE)
	$(BIN)/python tools/requirements.py bench > $(VENV)/requirements-bench.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r $(VENV)/requirements-bench.txt
	@touch $@

.PHONY: cargo
cargo:
	@command -v cargo > /dev/null || \
	  { echo "claude_wire is built from Rust source: install Rust 1.82 or newer (https://rustup.rs) and try again."; exit 1; }
