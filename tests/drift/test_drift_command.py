"""How `make drift` compares flags, typings and recorded messages, and when it refuses to start a CLI."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from each import each

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import Result

from children import linux_only
from claude_wire.testing import Recording
from claude_wire_kit.commands.shared.failure import Failure
from drift import command, disk, floors, inside, scenarios, typings
from drift.flags import NO_FLAG, FlagsFound, find_flags
from drift.scenarios import SCENARIOS
from drift.structs import structs_source
from drift.typings import Typings
from drift.wire import Comparison
from folders import ROOT
from offline import sandbox
from shown import RUNNER

# --- flags ------------------------------------------------------------------------------------------------------------

HELP = """Usage: cli [options]

Options:
  -m, --model <name>             The model
  --newFlag, --new-flag <value>  What nobody knows
  --effort <level>               More of it
"""


def parser_of(refused: Sequence[str], words: Mapping[str, str]) -> Any:
    """Return a fake CLI. It rejects invalid values of the flags in `words`, then the first flag in `refused`."""

    def run(arguments: list[str]) -> str:
        if arguments == ["--help"]:
            return HELP
        given = [argument.partition("=") for argument in arguments if argument.startswith("--")]
        for name, _, value in given:
            if name in words and value not in words[name].split(", "):
                return f"error: option '{name} <it>' argument '{value}' is invalid. Allowed choices are {words[name]}."
        return next(f"error: unknown option '{name}'" for name, *_ in given if name in (*refused, NO_FLAG))

    return run


def test_flags_are_new_by_the_help_and_gone_by_what_is_refused() -> None:
    run = parser_of(["--session-mirror", "--resume-drops-turn"], {})
    found = find_flags(run)
    assert found.new == ["--new-flag"]
    assert found.listed == 3
    assert found.asked > 30
    assert sorted(found.gone) == ["--resume-drops-turn", "--session-mirror"]


def test_words_of_a_flag_are_compared_with_those_that_it_says() -> None:
    run = parser_of([], {"--effort": "low, medium, high, xhigh, utmost", "--thinking": "adaptive, enabled, disabled"})
    found = find_flags(run)
    assert (found.new, found.gone) == (["--new-flag"], [])
    assert (found.new_words, found.gone_words) == ({"--effort": ["utmost"]}, {"--effort": ["max"]})


def test_a_parser_that_refuses_nothing_has_judged_nothing() -> None:
    """A CLI that accepts every flag says nothing about which flags it knows, so no flag counts as asked."""
    found = find_flags(lambda arguments: HELP if arguments == ["--help"] else "")
    assert (found.listed, found.asked) == (3, 0)


@pytest.mark.parametrize("said", ["", "-" * 300_000, "--a " * 50_000, "--a" + "-a" * 100_000])
def test_a_program_without_a_help_has_no_flags_to_compare(said: str) -> None:
    assert find_flags(lambda arguments: said) == FlagsFound([], [], {}, {})


@linux_only
def test_of_a_program_that_never_ends_the_beginning_is_read(tmp_path: Path) -> None:
    assert inside.said_by(["yes"], tmp_path) == "y\n" * (inside.HELP_BYTES // 2)


# --- the command ------------------------------------------------------------------------------------------------------

SAID: dict[str, Any] = {
    "version": "9.9.9 (Another CLI)",
    "failed": {"hooks": "it ended"},
    "flags": {
        "new": ["--new-flag"],
        "gone": ["--effort"],
        "new_words": {"--thinking": ["some"]},
        "gone_words": {},
        "listed": 3,
        "asked": 40,
    },
}
LINE = {"type": "assistant", "message": {"role": "assistant", "content": []}, "zzz": 1}


@pytest.fixture
def no_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the minimum number of findings that each source must have."""
    monkeypatch.setattr(floors, "FLOORS", {})


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_floors: None) -> Path:
    """Return a fake CLI. Instead of running it in the sandbox, a stub writes one recording and its cli.json."""

    def run_inside(command: Sequence[str], variables: Mapping[str, str] | None = None) -> int:
        folder = Path(command[-1])
        (folder / "partial.1").mkdir()
        (folder / "partial.1" / "stdout.ndjson").write_text(json.dumps(LINE) + "\n")
        (folder / "cli.json").write_text(json.dumps(SAID))
        return 0

    monkeypatch.setattr(sandbox, "run_inside", run_inside)
    path = tmp_path / "claude"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o700)
    return path


def drift(*arguments: object) -> Result:
    return RUNNER.invoke(command.drift, [*map(str, arguments)])


def test_the_table_has_a_row_for_each_difference(other: Path) -> None:
    result = drift(other)
    assert result.exit_code == 1
    rows = [re.split(r"\s{2,}", row.rstrip()) for row in result.stdout.splitlines()]
    assert ["new", "field", "assistant.zzz", "partial.1, line 1"] in rows
    assert ["new", "flag", "--new-flag", "--help"] in rows
    assert ["new", "word", "some at --thinking", "--help"] in rows
    assert ["gone", "flag", "--effort", "the command line"] in rows
    assert "9.9.9 (Another CLI): 1 messages of 1 kinds" in result.stdout
    assert "the scenario hooks did not finish: it ended" in result.stdout


def test_json_has_the_same(other: Path) -> None:
    plain = json.loads(drift(other, "--json").stdout)
    assert [(one["change"], one["what"], one["name"]) for one in plain["drift"]] == [
        ("new", "flag", "--new-flag"),
        ("new", "word", "some"),
        ("new", "field", "zzz"),
        ("gone", "flag", "--effort"),
    ]
    assert (plain["version"], plain["failed"], plain["kinds"]) == (SAID["version"], SAID["failed"], {"assistant": 1})


RECORD = {"type": "user", "uuid": "u", "message": {"role": "user", "content": "x"}, "yyy": 1}
ATTACHMENT = {"type": "attachment", "uuid": "u", "attachment": {"type": "no_such_thing", "a": 1}}


def test_transcripts_that_the_cli_has_left_on_disk_are_compared(tmp_path: Path, other: Path) -> None:
    home = tmp_path / "home"
    project = home / ".claude" / "projects" / "p"
    project.mkdir(parents=True)
    lines = "".join(json.dumps(line) + "\n" for line in (RECORD, ATTACHMENT, {"type": "new_record"}))
    (project / "session.jsonl").write_text(lines)
    (project / "link.jsonl").symlink_to(other)
    disk.keep(home, tmp_path, "partial")
    comparison = Comparison()
    for name, data in disk.kept(tmp_path):
        comparison.transcript(name, data)
    found = [(drift.finding.what, drift.finding.path, drift.where.partition(", ")[2]) for drift in comparison.drifts()]
    assert found == [
        ("object", "attachment.attachment", "line 2"),
        ("type", "new_record", "line 3"),
        ("field", "user.yyy", "line 1"),
    ]
    assert len(list(disk.kept(tmp_path))) == 1
    compile(structs_source(comparison.drifts(), "For a test."), "written", "exec")


def test_structs_are_printed_alone(other: Path) -> None:
    source = drift(other, "--structs").stdout
    compile(source, "written", "exec")
    assert "    zzz: int | None = None\n" in source


def test_recordings_are_kept_where_nothing_was(other: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert drift(other, "--record", kept).exit_code == 1
    assert (kept / "partial.1" / "stdout.ndjson").exists()
    again = drift(other, "--record", kept)
    assert (again.exit_code, "it is not empty" in again.stderr) == (2, True)


# --- sources that give too little -------------------------------------------------------------------------------------

QUIET: dict[str, Any] = {
    "version": "9.9.9 (Another CLI)",
    "failed": {},
    "flags": {"new": [], "gone": [], "new_words": {}, "gone_words": {}, "listed": 3, "asked": 40},
}
#: A file that a run writes, its content, and the sources that need the file.
LEFT: list[tuple[str, Any, set[str]]] = [
    ("partial.1/stdout.ndjson", {"type": "keep_alive"}, {"kinds of messages", "scenario partial, lines"}),
    (
        "hooks.1/stdout.ndjson",
        {
            "type": "control_request",
            "request_id": "r",
            "request": {
                "subtype": "hook_callback",
                "callback_id": "c",
                "input": {
                    "hook_event_name": "Stop",
                    "session_id": "s",
                    "transcript_path": "/t",
                    "cwd": "/",
                    "stop_hook_active": False,
                },
            },
        },
        {"kinds of messages", "events of hooks", "scenario hooks, lines"},
    ),
    ("transcripts/hooks.1.jsonl", {"type": "tag", "tag": "t", "sessionId": "s"}, {"records of transcripts"}),
]
LOW = {
    "flags in the help": 3,
    "flags that the parser judged": 40,
    "kinds of messages": 2,
    "events of hooks": 1,
    "records of transcripts": 1,
    "scenario hooks, lines": 1,
    "scenario partial, lines": 1,
    "typings, messages": 5,
}


def a_run_that_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: Sequence[tuple[str, Any, set[str]]], said: Any = QUIET
) -> Path:
    """Return a fake CLI without drift. Instead of running it in the sandbox, a stub writes the files in `left`."""

    def run_inside(command: Sequence[str], variables: Mapping[str, str] | None = None) -> int:
        for name, line, _ in left:
            file = Path(command[-1]) / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(line) + "\n")
        (Path(command[-1]) / "cli.json").write_text(json.dumps(said))
        return 0

    monkeypatch.setattr(sandbox, "run_inside", run_inside)
    monkeypatch.setattr(floors, "FLOORS", LOW)
    path = tmp_path / "claude"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o700)
    return path


def test_a_run_in_which_every_source_gives_its_floor_is_green(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = drift(a_run_that_leaves(tmp_path, monkeypatch, LEFT))
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [re.split(r"\s{2,}", row) for row in result.stdout.splitlines()]
    for source, floor in LOW.items():
        asked = not source.startswith("typings")
        assert ([source, f"{floor}", "of at least", f"{floor}", "ok"] in rows) == asked, source


@pytest.mark.parametrize("missing", range(len(LEFT)))
@pytest.mark.parametrize("arguments", [(), ("--json",), ("--structs",)], ids=str)
def test_a_source_that_yields_nothing_is_an_error(
    missing: int, arguments: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [one for number, one in enumerate(LEFT) if number != missing]
    result = drift(a_run_that_leaves(tmp_path, monkeypatch, left), *arguments)
    assert result.exit_code == 2
    said = result.stdout + result.stderr
    if "--json" in arguments:
        short = {one["name"] for one in json.loads(result.stdout)["sources"] if one["short"]}
        assert short == LEFT[missing][2]
    for source in LEFT[missing][2]:
        assert source in said


@pytest.mark.parametrize("source", ["listed", "asked"])
def test_flags_that_were_not_read_are_an_error(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {**QUIET, "flags": {**QUIET["flags"], source: 0}}
    result = drift(a_run_that_leaves(tmp_path, monkeypatch, LEFT, said))
    assert (result.exit_code, "TOO LITTLE" in result.stdout) == (2, True)


def test_typings_in_which_nothing_is_found_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK may have renamed its types or moved them to another file, so finding none is an error."""
    pytest.importorskip("tree_sitter_typescript")
    file = tmp_path / "sdk.d.ts"
    file.write_text("export * from './agentSdkTypes';\n")
    result = drift(a_run_that_leaves(tmp_path, monkeypatch, LEFT), "--typings", file)
    assert (result.exit_code, "the CLI sent too little to compare: typings, messages" in result.stderr) == (2, True)


def test_every_scenario_and_every_kind_of_source_has_a_floor() -> None:
    assert {f"scenario {name}, lines" for name in SCENARIOS} <= floors.FLOORS.keys()
    assert {f"typings, words of {name}" for name in command.WORDS} <= floors.FLOORS.keys()
    assert LOW.keys() <= floors.FLOORS.keys()
    assert min(floors.FLOORS.values()) > 0


@each("source", floors.FLOORS, str)
def test_one_less_than_the_floor_is_too_little(source: str) -> None:
    whole = dict(floors.FLOORS)
    assert [one.name for one in floors.sources(whole) if one.is_short] == []
    assert [one.name for one in floors.sources({**whole, source: whole[source] - 1}) if one.is_short] == [source]
    del whole[source]
    assert [one.name for one in floors.sources(whole) if one.is_short] == [source]


# --- where no CLI is started ------------------------------------------------------------------------------------------


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    """Return a fake CLI that creates the file ``started`` when it runs."""
    path = tmp_path / "telling"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    path.chmod(0o700)
    return path


def test_without_a_namespace_no_cli_is_started(telling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    result = drift(telling)
    assert (result.exit_code, "needs a network namespace" in result.stderr) == (2, True)
    assert not (telling.parent / "started").exists()


def test_with_another_interface_no_cli_is_started(telling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "bring_loopback_up", lambda: None)
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "lo"), (2, "eth0")])
    with pytest.raises(RuntimeError, match="lo, eth0, and only lo is allowed"):
        inside.main(telling, telling.parent)
    assert not (telling.parent / "started").exists()


# --- typings ----------------------------------------------------------------------------------------------------------

TYPINGS = """
import type { UUID } from 'crypto';
declare namespace coreTypes { export { SDKMessage } }
export declare type EffortLevel = 'low' | 'utmost';
/** A comment. */
export declare type SDKMessage = SDKGroup | SDKNews;
declare type SDKGroup = SDKStatusMessage | SDKTea;
declare type SDKBase = { uuid: UUID; session_id: string };
export declare interface SDKNews { type: 'news'; count: number; items?: Array<Item>; more: Record<string, unknown>; }
declare type Item = { of: Item; word: 'a' | 'b'; } | null;
declare type SDKTea = SDKBase & { type: 'system'; subtype: 'tea'; cups: (string | readonly number[])[]; };
declare type SDKStatusMessage = Partial<SDKWide> & SDKBase;
declare type SDKWide = { type: 'system'; subtype: 'status'; status: null; steam: SDKNews['count']; };
export declare type StdoutMessage = coreTypes.SDKMessage;
declare type SDKControlRequestInner = SDKControlMcpStatusRequest | SDKControlBrewRequest;
declare type SDKControlMcpStatusRequest = { subtype: 'mcp_status'; };
declare type SDKControlMcpStatusResponse = { mcpServers: { name: string; status: string; heat: number }[]; };
declare type SDKControlBrewRequest = { subtype: 'brew'; kind?: string; };
export declare type HookInput = SunriseHookInput | StopHookInput;
declare type StopHookInput = { hook_event_name: 'Stop'; session_id: string; transcript_path: string; cwd: string;
    stop_hook_active: boolean; };
declare type SunriseHookInput = { hook_event_name: 'Sunrise'; colour: string; };
"""


HOSTILE = {
    "named too often": "".join(f"type A{n} = {{ a: A{n + 1} }} | {{ b: A{n + 1} }};" for n in range(40)),
    "fields times rows": f"type A0 = {{ {'; '.join(f'f{n}: 1' for n in range(9000))}; w: {' | '.join(['1'] * 900)} }};",
    "merged too often": "".join(f"type A{n} = A{n + 1} & A{n + 1};" for n in range(40)),
    "nested": f"type A0 = {'(' * 9000}string{')' * 9000};",
    "large": f"// {'x' * (1 << 23)}",
}


@pytest.mark.parametrize("declared", HOSTILE.values(), ids=HOSTILE)
def test_typings_that_take_too_much_are_refused(declared: str, other: Path, tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter_typescript")
    file = tmp_path / "sdk.d.ts"
    file.write_text(f"type SDKMessage = A0;\n{declared}")
    result = drift(other, "--typings", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "type", ["Array<>", "Record<string>", "Partial<>", "A0[A0]", "A0[]['a'][]", "'\udcff'", "readonly", "string[", "("]
)
def test_of_typings_with_mistakes_the_rest_is_read(type: str, other: Path, tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter_typescript")
    file = tmp_path / "sdk.d.ts"
    source = f"type SDKMessage = A0;\ntype EffortLevel = 'utmost';\ntype A0 = {{ type: 'news'; a: {type} }};\n"
    file.write_bytes(source.encode("utf-8", "surrogateescape"))
    assert "utmost at EffortLevel" in drift(other, "--typings", file).stdout


def test_a_number_in_typings_is_a_fraction_unless_it_is_known_to_be_whole() -> None:
    pytest.importorskip("tree_sitter_typescript")
    declared = (
        "type SDKMessage = A0; type A0 = { a: number; of: 0.9 | 3; index: number; deep: { num_turns: number[] } };"
    )
    assert [one for _, one in Typings(declared.encode()).messages()] == [
        {"a": 0.5, "of": of, "index": 1, "deep": {"num_turns": [1]}} for of in (0.9, 1)
    ]


def test_a_class_that_refuses_the_fractions_of_typings_is_found(
    other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tree_sitter_typescript")
    file = tmp_path / "sdk.d.ts"
    file.write_text("type SDKMessage = A0; type A0 = { type: 'result'; subtype: 'success'; num_turns: number; };")

    def misfits() -> list[str]:
        plain = json.loads(drift(other, "--typings", file, "--json").stdout)
        return [one["reason"] for one in plain["drift"] if one["what"] == "message"]

    assert misfits() == []
    monkeypatch.setattr(typings, "WHOLE_NAMES", frozenset())
    assert misfits() == ["expected a whole number, got a fraction at $.num_turns"]


def test_what_typings_declare_is_compared_as_messages_are(other: Path, tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter_typescript")
    file = tmp_path / "sdk.d.ts"
    file.write_text(TYPINGS)
    plain = json.loads(drift(other, "--typings", file, "--json").stdout)
    declared = {(one["what"], one["name"], one["where"]) for one in plain["drift"] if one["where"] != "--help"}
    assert declared - {("flag", "--effort", "the command line"), ("field", "zzz", "partial.1, line 1")} == {
        ("type", "news", "SDKNews"),
        ("subtype", "tea", "SDKTea"),
        ("field", "steam", "SDKStatusMessage"),
        ("request", "brew", "SDKControlBrewRequest"),
        ("field", "heat", "SDKControlMcpStatusResponse"),
        ("hook event", "Sunrise", "SunriseHookInput"),
        ("word", "utmost", "EffortLevel"),
    }
    source = drift(other, "--typings", file, "--structs").stdout
    compile(source, "written", "exec")
    assert "    count: Number | None = None\n" in source
    assert "    # one of a, b\n    word: str | None = None\n" in source


# --- `make drift` reads a bounded amount of data from a CLI and from typings: the limits of tools/drift/README.md -----


MIB = 1 << 20
#: Seconds to wait for another thread.
SECONDS = 30.0


def row(begins: str) -> str:
    """Return the limit in the row of the README's table that begins with this text."""
    page = (ROOT / "tools" / "drift" / "README.md").read_text()
    found = re.search(rf"^\| {re.escape(begins)}[^|]* \| ([^|]+) \|", page, re.MULTILINE)
    assert found is not None, begins
    return found[1]


def test_the_page_says_the_bounds_of_the_code() -> None:
    assert row("the output of a CLI in a scenario") == f"{scenarios.MAX_BYTES // MIB} MiB in each file of its recording"
    assert row("the transcripts that") == f"{disk.MAX_BYTES // MIB} MiB in {disk.MAX_FILES} files"
    assert row("the typings") == f"{typings.MAX_BYTES // MIB} MiB, and {typings.MAX_STEPS:,} steps through them"
    assert row("the help of a CLI") == f"{inside.HELP_BYTES >> 10} KiB"


def test_the_recording_of_a_scenario_ends_at_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "require", lambda: None)  # the test does not enter the session, so no CLI starts
    api: Any = SimpleNamespace(url="http://127.0.0.1:9")
    stage = scenarios.Stage(tmp_path / "claude", api, tmp_path, tmp_path, tmp_path / "recordings", "talkative")
    stage.session()
    with closing(*stage.recorders) as recorder:
        for _ in range(9):
            recorder.received(b"x" * (MIB - 1) + b"\n")
            recorder.stderr("y" * (MIB - 1))
    recorded = Recording.load(tmp_path / "recordings" / "talkative.1")
    assert len(recorded.stdout) == 8 * MIB
    assert len(recorded.stderr) <= 8 * MIB


def test_of_the_transcripts_on_disk_whole_lines_up_to_the_bounds_are_kept(tmp_path: Path) -> None:
    project = tmp_path / ".claude" / "projects" / "p"
    project.mkdir(parents=True)
    line = b"x" * (MIB - 1) + b"\n"
    for number in range(disk.MAX_FILES + 1):
        (project / f"{number}.jsonl").write_bytes(b"y\n" if number else line * 9 + b"x")
    disk.keep(tmp_path, tmp_path, "talkative")
    files = [data for _, data in disk.kept(tmp_path)]
    assert len(files) <= disk.MAX_FILES
    assert sum(map(len, files)) <= disk.MAX_BYTES
    assert all(not data or data.endswith(b"\n") for data in files)


@linux_only
def test_of_typings_without_an_end_no_more_is_read_than_is_allowed() -> None:
    """The typings come from another project, so drift must not read a file without end into memory."""
    with pytest.raises(Failure, match="more than 8,388,608 bytes"):
        command.typings_of(Path("/dev/zero"))


@linux_only
def test_of_a_help_without_an_end_the_beginning_is_read(tmp_path: Path) -> None:
    """One limit applies to stdout and stderr of the help together."""
    endless = "import os\nwhile True: os.write(1, b'o' * 4096); os.write(2, b'e' * 4096)"
    said = inside.said_by([sys.executable, "-c", endless], tmp_path)
    assert (len(said), set(said)) == (1 << 18, {"o", "e"})


@linux_only
def test_a_help_is_never_killed_after_it_was_reaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the time limit expires while the help ends, drift must not signal a process group that may be reused."""
    cancelled, goes_on = threading.Event(), threading.Event()
    were_there: list[bool] = []
    timers: list[threading.Timer] = []

    class Late(threading.Timer):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            timers.append(self)

        def run(self) -> None:
            assert cancelled.wait(SECONDS)
            assert goes_on.wait(SECONDS)
            self.function()

        def cancel(self) -> None:
            cancelled.set()

        def join(self, timeout: float | None = None) -> None:
            goes_on.set()
            super().join(timeout)

    def killpg(group: int, number: int) -> None:
        were_there.append(Path(f"/proc/{group}").exists())

    monkeypatch.setattr(threading, "Timer", Late)
    monkeypatch.setattr(os, "killpg", killpg)
    assert inside.said_by([sys.executable, "-c", "print('help')"], tmp_path) == "help\n"
    goes_on.set()
    threading.Thread.join(timers[0], SECONDS)
    assert were_there == [True, True]
