"""``claude-wire demo``: the agent fixes its project, and the benchmark decodes a part of a real recording."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from rich.console import Console
from rich.text import Text

from claude_wire.testing import Recording
from claude_wire_kit.commands import demo as demo_module
from claude_wire_kit.commands.app import cli
from claude_wire_kit.survey.race import RESULTS_ONLY, Lap, Way, race, ways
from folders import ROOT
from recordings import load as load_original
from shown import RUNNER, in_order

COMMAND = [sys.executable, "-m", "claude_wire_kit", "demo"]
RECORDING = Recording.load(demo_module.SESSION)

#: Texts that the demo must show, in this order.
STORY = [
    "> Run the tests, please.",
    "* guide in ",
    "+ Bash python -m unittest -v",
    "? may Bash run?",
    "? allowed",
    "  = Exit code 1",
    "**One test fails**",
    "= ok, $",
    "> Please fix the bug.",
    "It should round the sum, not the items.",
    "+ Edit shop/cart.py",
    "? may Edit run?",
    "  = The file shop/cart.py has been updated.",
    "> Run the tests again.",
    "Ran 3 tests",
    "All tests pass.",
    "> Let two subagents review it.",
    "-- subagent Explore",
    "-- subagent test-reader",
    "My two subagents are back:",
    "= ok, $",
    " bytes through the pipe of a process that exited with 0: ",
    " messages, 0 invalid, 0 unknown",
]


# --- the recording ----------------------------------------------------------------------------------------------------


def test_packaged_recording_is_the_beginning_of_a_recorded_session() -> None:
    original = load_original("17_sdk_client_full")
    assert original.stdout.startswith(RECORDING.stdout)
    reads = RECORDING.files["stdout.reads.jsonl"]
    assert original.files["stdout.reads.jsonl"].startswith(reads)
    assert sum(json.loads(read)[1] for read in reads.splitlines()) == len(RECORDING.stdout)


def test_packaged_recording_is_whole_and_small() -> None:
    assert RECORDING.stdout.endswith(b"\n")
    assert sum(file.stat().st_size for file in demo_module.SESSION.iterdir()) < 50_000


# --- the race ---------------------------------------------------------------------------------------------------------


def test_every_way_decodes_every_line() -> None:
    lines = RECORDING.stdout.count(b"\n")
    for way in ways():
        assert way.decode(RECORDING.stdout * 2) == 2 * lines, way.name


def test_only_the_results_are_decoded_for_the_last_number() -> None:
    results = sum(json.loads(line)["type"] == "result" for line in RECORDING.stdout.splitlines())
    assert results == 3
    assert RESULTS_ONLY.decode(RECORDING.stdout * 2) == 2 * results


def test_last_number_is_the_ratio_of_the_times_that_were_taken() -> None:
    laps = [Lap("claude_wire, typed", 2.0, 100, 5), Lap("json.loads per line", 3.0, 100, 5)]
    said = demo_module._headline(Lap("claude_wire, results only", 0.25, 7, 5), laps, 1_000_000_000)
    assert "needs 7 of these lines" in said
    assert said.endswith("4.00 GB/s, 12.0 x as fast as json.loads per line.")


def test_orjson_is_measured_if_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("orjson")
    ours_and_json = ["claude_wire, typed", "claude_wire, dict", "json.loads per line"]
    assert [way.name for way in ways()] == [*ours_and_json, "orjson.loads per line"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert [way.name for way in ways()] == ours_and_json


def test_ways_take_turns_and_the_best_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    order: list[str] = []
    costs = {"slow": iter([5.0, 4.0, 6.0]), "fast": iter([2.0, 3.0, 1.0])}

    def way(name: str) -> Way:
        def run(data: bytes) -> int:
            nonlocal now
            order.append(name)
            now += next(costs[name])
            return len(data)

        return Way(name, run)

    monkeypatch.setattr("time.perf_counter", lambda: now)
    laps = race([way("slow"), way("fast")], b"12345", rounds=3, seconds=1000)
    assert order == ["slow", "fast"] * 3
    assert [tuple(lap) for lap in laps] == [("slow", 4.0, 5, 3), ("fast", 1.0, 5, 3)]


def test_race_ends_with_the_round_in_which_its_time_is_up() -> None:
    order: list[str] = []

    def way(name: str) -> Way:
        def run(data: bytes) -> int:
            order.append(name)
            return 1

        return Way(name, run)

    assert [lap.rounds for lap in race([way("a"), way("b")], b"", rounds=5, seconds=0)] == [1, 1]
    assert order == ["a", "b"]


# --- the command ------------------------------------------------------------------------------------------------------


#: A program that runs the command, and measures each decoder once.
ONE_ROUND = """if True:
    from claude_wire_kit.commands import demo, main
    demo.RACE_SECONDS = 0.0
    main()
"""


def test_demo_shows_the_story_and_a_row_for_each_way() -> None:
    done = subprocess.run([sys.executable, "-c", ONE_ROUND, "demo"], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0
    assert done.stderr == b""
    shown = done.stdout.decode()
    assert "\x1b" not in shown  # no colours without a terminal
    in_order(shown, *STORY, "Decoding a recorded session of the CLI 260 times", "33,280 lines", "ratio to json")
    ratios = {
        way.name: re.findall(rf"^\W+{re.escape(way.name)} .* ([\d.]+) x\W*$", shown, re.MULTILINE) for way in ways()
    }
    assert [len(found) for found in ratios.values()] == [1] * len(ratios), shown
    assert ratios["json.loads per line"] == ["1.0"]
    # The last sentence of the demo sums up the fastest way.
    last = " ".join(shown.rpartition("\nA program that waits for results")[2].split())
    assert re.fullmatch(r"needs 780 of .* [\d.]+ GB/s, [\d.]+ x as fast as json\.loads per line.*\.", last), shown


def test_no_bench_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("nothing was to be measured")

    monkeypatch.setattr(demo_module, "race", never)
    done = RUNNER.invoke(cli, ["demo", "--no-bench"])
    assert done.exit_code == 0
    in_order(done.stdout, *STORY)
    assert "ratio" not in done.stdout


def test_the_agent_is_a_child_and_its_folder_is_gone_afterwards(tmp_path: Path) -> None:
    """The agent edits a real file, which the tests of its project read."""
    environment = {**os.environ, "TMPDIR": os.fspath(tmp_path)}
    done = subprocess.run([*COMMAND, "--no-bench"], env=environment, capture_output=True, timeout=60, check=False)
    assert f"* guide in {tmp_path}{os.sep}" in done.stdout.decode()
    assert list(tmp_path.iterdir()) == []


def test_demo_needs_no_network() -> None:
    program = (
        "import sys\n"
        "def refuse(event, arguments):\n"
        "    if event.startswith('socket.') and event != 'socket.__new__':\n"
        "        raise RuntimeError(event)\n"
        "sys.addaudithook(refuse)\n"
        "sys.argv = ['claude-wire', 'demo', '--no-bench']\n"
        "from claude_wire_kit.commands import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert b"All tests pass." in done.stdout


# --- The picture in docs/index.md shows the output of ``claude-wire demo``, which looks like ``run`` and ``view`` -----


PICTURE = ROOT / "docs" / "view.svg"
#: The template of the picture. The default template of rich would load a font from another host.
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>A session in the terminal</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def printed() -> list[str]:
    """Run the demo. Return the rows of its second prompt, with colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": "100", "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "claude_wire_kit", "demo", "--no-bench"]
    rows = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    plain = [Text.from_ansi(row).plain for row in rows]
    first = plain.index("> Please fix the bug.")
    return rows[first : plain.index("> Run the tests again.")]


def picture(rows: list[str]) -> str:
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=100, file=nowhere, force_terminal=True, color_system="truecolor")
        for row in rows:
            console.print(Text.from_ansi(row))
    return console.export_svg(title="claude-wire run", code_format=SVG, unique_id="view")


def words(rows: list[str]) -> list[str]:
    """Return the words of a session without its durations, such as "1.23 s"."""
    return re.sub(r"\d+\.\d\d s", "", " ".join(rows).replace("\N{NO-BREAK SPACE}", " ")).split()


def test_the_picture_of_a_session_is_what_the_demo_prints() -> None:
    rows = printed()
    if os.environ.get("CLAUDE_WIRE_PICTURES"):
        PICTURE.write_text(picture(rows), encoding="utf-8")
    drawn = PICTURE.read_text(encoding="utf-8")
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    matrix = drawn.partition('<g class="view-matrix">')[2]
    shown = [html.unescape(re.sub("<[^>]+>", "", text)) for text in re.findall(r"<text[^>]*>.*?</text>", matrix)]
    assert "".join(words(shown)) == "".join(words([Text.from_ansi(row).plain for row in rows]))
