"""Build the fuzz targets and run all of them in parallel, each for some seconds: ``fuzz.py [SECONDS]`` (default 60).

The targets are in ``fuzz/``, in the layout of cargo-fuzz, so ``cargo fuzz run scan`` works as well. This script does
not need cargo-fuzz, which takes longer to install than the targets take to build: it calls cargo with the same flags.
If the nightly toolchain is installed, the targets are built with AddressSanitizer; otherwise the script says so.

A target begins with recorded lines, lines of generated traffic, and the corpus of earlier runs in ``fuzz/corpus``. It
writes an input that fails to ``fuzz/artifacts``; run the target with that file to reproduce the failure.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from memcheck import has_nightly, host_target

ROOT = Path(__file__).parent.parent
FUZZ = ROOT / "fuzz"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TARGETS = sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))
#: Target -> how many bytes at the start of an input are the target's options.
OPTIONS = {"columns": 2, "filter": 3, "scan": 1, "stream": 4, "typed": 1}
assert sorted(OPTIONS) == TARGETS, f"OPTIONS must name the targets: {TARGETS}"
SEEDS = 60
#: Lines of the small plan that the target ``typed`` reads by (``rust/src/typed/plain.rs``), and a dict.
TYPED = [
    b'{"type":"event","event":{"type":"delta","text":"one","index":0},"session_id":"s"}',
    b'{"type":"event","event":{"type":"delta","text":"\\u0061\\ud83d\\ude00\\"\\\\\\/\\b\\f\\n\\r\\t","index":0,"new":[1]},"session_id":null}',
    b'{"session_id":"s","event":{"seconds":5,"type":"stop"},"type":"event","a":1.5}',
    b'{"type":"event","event":{"type":"new"},"a_key_that_has_more_than_thirty_two_bytes":"x"}',
    b'{"type":"system","subtype":"init","tools":["one",null],"more":{"key":[{"a":"one"},{"b":{}}],"n":1}}',
    b'{"more":"one","tools":null,"subtype":"init","type":"system"}',
    b'{"type":"node","done":true,"cost":1,"parts":[{"type":"delta","text":"one"},{"type":"stop"}],"counts":{"a":1}}',
    b'{"type":"node","parent":{"cost":0.5,"parent":{"done":null,"parent":null},"counts":{}},"counts":{"a":1,"b":2}}',
    b'{"a":{"b":{"c":"one"}},"a":"one"}',
]

sys.path.insert(0, str(ROOT / "tests" / "support"))

#: The flags of cargo-fuzz 0.13, which add the coverage counters that libFuzzer reads.
COVERAGE = """
    -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0
    -Ccodegen-units=1 --cfg fuzzing
"""


def main() -> int:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    binaries = build()
    seeds = BUILT / "fuzz-seeds"
    shutil.rmtree(seeds, ignore_errors=True)
    inputs = list(seed_inputs())
    runs = {target: start(target, binaries / target, seconds, seeds / target, inputs) for target in TARGETS}
    return max([report(target, *run) for target, run in runs.items()])


def build() -> Path:
    """Build all targets and return the folder with the programs."""
    host = host_target()
    cargo = ["cargo"]
    flags = COVERAGE
    if has_nightly():
        cargo += ["+nightly"]
        flags += " -Zsanitizer=address"
    else:
        print("fuzz: no nightly toolchain (rustup toolchain install nightly): without AddressSanitizer", flush=True)
    target = BUILT / "fuzz"
    command = [*cargo, "build", "--quiet", "--release", "--locked", "--target", host, "--target-dir", str(target)]
    subprocess.run(command, cwd=FUZZ, env={**os.environ, "RUSTFLAGS": " ".join(flags.split())}, check=True)
    return target / host / "release"


def seed_inputs() -> Iterator[bytes]:
    """Yield inputs with a few short lines. In long lines, most of the fuzzer's changes would not matter."""
    import recordings
    from delta_lines import BASE, MERGEABLE, NOT_MERGEABLE
    from traffic import traffic

    rng = random.Random(1)
    for name in recordings.names():
        recording = recordings.load(name)
        lines = [line for line in (recording.stdout + recording.stdin).split(b"\n") if len(line) < 600]
        yield b"\n".join(rng.choice(lines) for _ in range(4)) + b"\n"
    for line in (*MERGEABLE.values(), *NOT_MERGEABLE.values()):
        yield b"\n".join([BASE, line, BASE, line]) + b"\n"
    for seed in range(SEEDS):
        order, style = rng.choice(["cli", "session", "shuffled"]), rng.choice(["compact", "python"])
        stream = traffic(seed, lines=30, text="mixed", order=order, style=style, deltas_only=seed % 2 == 0)
        yield b"\n".join([line for line in stream.split(b"\n") if len(line) < 500][:8]) + b"\n"
    for line in TYPED:
        yield b"\n".join([line, line.replace(b"one", b"two"), rng.choice(TYPED), line]) + b"\n"


def start(
    target: str, binary: Path, seconds: int, seeds: Path, inputs: list[bytes]
) -> tuple[subprocess.Popen[str], Path]:
    """Start a target with these seeds. Return the process and the log."""
    corpus = FUZZ / "corpus" / target
    artifacts = FUZZ / "artifacts" / target
    for folder in (seeds, corpus, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(2)
    for number, data in enumerate(inputs):
        options = bytes(rng.choice([0, 1, 4, 255, rng.randrange(256)]) for _ in range(OPTIONS[target]))
        (seeds / f"{number:03}").write_bytes(options + data)
    command = [
        *[str(binary), str(corpus), str(seeds), f"-artifact_prefix={artifacts}/", f"-dict={FUZZ / 'dictionary.txt'}"],
        # An input's timeout only needs to end endless loops, so it is long: other processes may slow the fuzzers down.
        *[f"-max_total_time={seconds}", "-max_len=2000", "-timeout=90", "-rss_limit_mb=4096", "-print_final_stats=1"],
    ]
    log = seeds.with_suffix(".log")
    with log.open("w") as out:
        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, text=True, cwd=FUZZ), log


def report(target: str, process: subprocess.Popen[str], log: Path) -> int:
    """Wait for a target and print one line, or its whole log if it failed. Return the exit status."""
    failed = process.wait() != 0
    said = log.read_text(errors="replace")
    runs = re.search(r"number_of_executed_units: (\d+)", said)
    covered = re.findall(r"cov: (\d+)", said)
    if failed:
        print(said)
    counts = f"{int(runs[1]) if runs else 0:,} inputs, {covered[-1] if covered else 0} edges"
    print(f"fuzz {target:9} {'FAILED' if failed else 'nothing found'}: {counts}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
