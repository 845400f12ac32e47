"""``claude-wire usage`` prints correct sums in rows that fit, and imports only the modules that it needs."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import Result

from claude_wire_kit.commands.app import cli
from claude_wire_kit.terminal.columns import Column, cell_count, fitted, laid_out
from cli_lines import line
from long_tests import LONG
from screens import PATIENCE, Screen, terminal_environment
from sessions import scenarios, truth, unpack
from shown import RUNNER

COMMAND = [sys.executable, "-m", "claude_wire_kit"]


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("everything")
    for scenario in scenarios():
        unpack(scenario, folder)
    return folder / "projects"


def run(*arguments: object) -> Result:
    return RUNNER.invoke(cli, ["usage", *map(str, arguments)])


def shown(*arguments: object) -> str:
    done = run(*arguments)
    assert (done.exit_code, done.stderr) == (0, ""), done
    return done.stdout


def loaded(*arguments: object) -> Any:
    return json.loads(shown("--json", *arguments))


def expected(*names: str) -> dict[str, dict[str, int]]:
    total: dict[str, dict[str, int]] = {}
    for name in names:
        for model, counts in truth(name)["sums"]["expected_from_transcripts"].items():
            known = total.setdefault(model, dict.fromkeys(counts, 0))
            for kind, count in counts.items():
                known[kind] += count
    return total


@pytest.mark.parametrize("scenario", [name for name in scenarios() if name != "no_persistence"])
def test_json_by_model_is_the_truth(scenario: str, tmp_path: Path) -> None:
    projects = unpack(scenario, tmp_path)
    for folder in (projects, tmp_path):
        done = run("--json", "--by", "model", folder)
        assert json.loads(done.stdout)["models"] == expected(scenario)
        assert done.stderr == ("" if expected(scenario) else f"note: no answers of the model found in {projects}\n")


def test_all_ways_to_tell_apart_add_up_to_the_same(everything: Path) -> None:
    whole = loaded("--by", "model", everything)
    assert whole["models"] == expected(*scenarios())
    assert (whole["rows"], whole["unreadable"]) == ({}, [])
    for by in ("day", "week", "month", "project", "session", "subagent"):
        found = loaded("--by", by, everything)
        for name, value in whole.items():
            assert found[name] == (value if name not in ("by", "rows", "costs", "total") else found[name])
        assert found["total"]["cost"] == pytest.approx(whole["total"]["cost"])
        for kind, count in whole["total"]["tokens"].items():
            assert sum(row["tokens"][kind] for row in found["rows"].values()) == count
        for model, counts in whole["models"].items():
            models = [row["models"][model] for row in found["rows"].values() if model in row["models"]]
            assert {kind: sum(each[kind] for each in models) for kind in counts} == counts
        table = list(csv.DictReader(io.StringIO(shown("--by", by, "--csv", everything))))
        assert sum(int(row["answers"]) for row in table) == whole["total"]["tokens"]["answers"]
        assert sum(float(row["usd"]) for row in table) == pytest.approx(whole["total"]["cost"]["usd"], abs=1e-3)
        assert {row[by] for row in table} == found["rows"].keys()


def test_the_costs_of_the_cli_stand_beside(everything: Path) -> None:
    found = loaded("--by", "session", everything)
    own = {id: row["cost"]["cli_usd"] for id, row in found["rows"].items() if row["cost"]["cli_usd"]}
    states = {id: each.get("cost_state") for name in scenarios() for id, each in truth(name)["by_session"].items()}
    assert own == {id: pytest.approx(states[id]["totalCostUSD"]) for id in own}
    assert own.keys() == {id for id, state in states.items() if state}
    assert found["total"]["cost"]["cli_usd"] == pytest.approx(sum(own.values()))
    assert loaded("--since", "2000-01-01", everything)["total"]["cost"]["cli_usd"] is None
    text = shown("--by", "session", everything)
    assert "CLI's own" in text.splitlines()[0]
    assert "cost-state" in text


def test_weeks_and_months_begin_with_their_days(tmp_path: Path) -> None:
    days = ("2025-12-28", "2025-12-29", "2026-01-04", "2026-01-05")  # a Sunday, a Monday, a Sunday, a Monday
    lines = [answer("m", uuid=day, requestId=day, timestamp=f"{day}T12:00:00Z") for day in days]
    (tmp_path / "s.jsonl").write_bytes(b"".join(lines))
    for by, counts in (
        ("week", {"2025-W52": 1, "2026-W01": 2, "2026-W02": 1}),
        ("month", {"2025-12": 2, "2026-01": 2}),
    ):
        found = loaded("--by", by, "--tz", "UTC", tmp_path)["rows"]
        assert {name: row["tokens"]["answers"] for name, row in found.items()} == counts
        table = shown("--by", by, "--tz", "UTC", tmp_path).splitlines()
        assert [row.split()[0] for row in table[: table.index("")]] == [by, *counts, "total"]


def test_a_project_counts_the_subagents_of_its_sessions(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(answer("main", sessionId="a", cwd="/home/a"))
    (tmp_path / "b.jsonl").write_bytes(answer("other", sessionId="b", cwd="/home/b"))
    subagents = tmp_path / "a" / "subagents"
    subagents.mkdir(parents=True)
    (subagents / "agent-1.jsonl").write_bytes(answer("sub", sessionId="a", cwd="/home/a/below"))
    for by in ("day", "project", "session", "subagent", "model"):
        found = loaded("--by", by, "--project", "/home/../home/a", tmp_path)
        assert found["models"].keys() == {"main", "sub"}
        assert found["total"]["tokens"]["answers"] == 2
    assert loaded("--by", "project", "--project", "/home/b", tmp_path)["rows"].keys() == {"/home/b"}


def answer(model: str, **others: Any) -> bytes:
    usage = {"input_tokens": 1_000_000, "output_tokens": 0}
    message = {"id": model, "model": model, "role": "assistant", "content": [], "usage": usage}
    record = {"type": "assistant", "uuid": model, "parentUuid": None, "sessionId": "s", "requestId": "r"}
    return line({**record, "timestamp": "2026-01-02T03:04:05Z", "message": message, **others})


def test_a_model_without_a_price_is_a_question_and_no_zero(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(answer("claude-opus-5-5") + answer("of-\x1b[2J-tomorrow"))
    costs = loaded("--by", "model", tmp_path)
    assert costs["costs"]["claude-opus-5-5"] == {"usd": 4.0, "unpriced_answers": 0, "cli_usd": None}
    assert costs["costs"]["of-\x1b[2J-tomorrow"] == {"usd": None, "unpriced_answers": 1, "cli_usd": None}
    assert costs["total"]["cost"]["usd"] is None
    rows = {row.split()[0]: row.split()[-1] for row in shown("--by", "model", tmp_path).splitlines()[1:4]}
    assert rows == {"claude-opus-5-5": "$4.00", "of-\\x1b[2J-tomorrow": "?", "total": "$4.00+?"}
    assert "?: 1 answers of a model without a price: of-\\x1b[2J-tomorrow." in shown(tmp_path)
    assert "list prices of 2026-11-22" in shown(tmp_path)
    assert [row.rpartition(",")[2] for row in shown("--csv", tmp_path).splitlines()] == ["usd", "4.000000", ""]


def test_prices_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(answer("mine"))
    names = (
        "input_cost_per_token",
        "output_cost_per_token",
        "cache_creation_input_token_cost",
        "cache_read_input_token_cost",
    )
    (tmp_path / "prices.json").write_text(json.dumps({"mine": dict.fromkeys(names, 1e-05)}))
    found = loaded("--prices", tmp_path / "prices.json", tmp_path)
    assert found["total"]["cost"]["usd"] == pytest.approx(10)
    assert found["prices"].startswith("prices.json of 20")
    (tmp_path / "torn.json").write_text("{")
    (tmp_path / "odd.json").write_text(json.dumps({"mine": {names[0]: -1e-06}}))
    assert "input_cost_per_token of 'mine' is -1e-06" in run("--prices", tmp_path / "odd.json", tmp_path).stderr
    for name in ("torn.json", "gone.json", "odd.json"):
        done = run("--prices", tmp_path / name, tmp_path)
        assert (done.exit_code, done.stdout) == (2, "")
        assert name in done.stderr


def test_days_have_bounds_and_a_zone(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(answer("a") + answer("b", timestamp="2026-01-03T23:30:00Z"))
    assert loaded("--tz", "UTC", tmp_path)["rows"].keys() == {"2026-01-02", "2026-01-03"}
    assert loaded("--tz", "Europe/Berlin", tmp_path)["rows"].keys() == {"2026-01-02", "2026-01-04"}
    assert loaded("--tz", "UTC", "--since", "2026-01-03", tmp_path)["rows"].keys() == {"2026-01-03"}
    assert loaded("--tz", "UTC", "--until", "2026-01-02", tmp_path)["rows"].keys() == {"2026-01-02"}
    assert loaded("--since", "99999d", tmp_path)["rows"].keys() >= {"2026-01-02"}
    for arguments, limits in (
        (["--since", "1d"], "--since"),
        (["--since", "0d", "--until", "0d", "--json"], "--since and --until"),
        (["--project", "/nowhere", "--csv"], "--project"),
    ):
        done = run(*arguments, tmp_path)
        assert done.exit_code == 0
        assert done.stderr == f"note: no answers of the model found in {tmp_path} within {limits}\n"
    for wrong in (["--since", "yesterday"], ["--tz", "Nowhere/Land"], ["--tz", "../etc"], ["--by", "year"]):
        done = run(*wrong, tmp_path)
        assert done.exit_code == 2
        assert "Traceback" not in done.stderr


def test_the_folder_is_that_of_the_cli_if_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack("plain", tmp_path / ".claude")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    assert loaded("--by", "model")["models"] == expected("plain")
    unpack("tools", tmp_path / "other")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "other"))
    assert loaded("--by", "model")["models"] == expected("tools")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "nowhere"))
    done = run()
    assert done.exit_code == 2
    assert "nowhere" in done.stderr


def test_transcripts_that_are_gone_count_until_they_are_pruned(tmp_path: Path) -> None:
    for name in ("claude-opus-5-5", "claude-haiku-5"):
        (tmp_path / f"{name}.jsonl").write_bytes(answer(name))
    both = loaded("--by", "model", tmp_path)
    assert (both["files"], both["gone"]) == (2, [])
    old = tmp_path / "claude-haiku-5.jsonl"
    old.unlink()
    note = "note: 1 transcript is gone, and still counted; --prune forgets what is gone\n"
    for _ in range(2):
        done = run("--by", "model", "--json", tmp_path)
        assert (done.exit_code, done.stderr) == (0, note)
        found = json.loads(done.stdout)
        assert (found["models"], found["total"]) == (both["models"], both["total"])
        assert (found["files"], found["gone"]) == (1, [str(old)])
    # Without the index, the deleted transcript does not count.
    assert loaded("--by", "model", "--no-index", tmp_path)["models"].keys() == {"claude-opus-5-5"}
    for arguments in (("--prune",), ()):
        found = loaded("--by", "model", *arguments, tmp_path)
        assert (found["models"].keys(), found["gone"]) == ({"claude-opus-5-5"}, [])


def test_an_index_is_kept_unless_the_user_wants_none(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(answer("a"))
    cache = Path(os.environ["XDG_CACHE_HOME"])
    shown("--no-index", tmp_path)
    assert list(cache.iterdir()) == []
    shown(tmp_path)
    (index,) = cache.rglob("*.sqlite3")
    index.write_bytes(b"noise" * 1000)
    done = run(tmp_path)
    assert "is built anew" in done.stderr
    assert "2026-01-02" in done.stdout


# --- what a terminal shows --------------------------------------------------------------------------------------------


def rows(folder: Path, by: str, columns: int) -> list[str]:
    screen = Screen(columns)
    environment = terminal_environment(XDG_CACHE_HOME=os.environ["XDG_CACHE_HOME"], PYTHONIOENCODING="utf-8")
    command = [*COMMAND, "usage", str(folder), "--by", by]
    with subprocess.Popen(command, stdout=screen.terminal, stderr=screen.terminal, env=environment) as process:
        os.close(screen.terminal)
        while screen.read():
            pass
        assert process.wait(PATIENCE) == 0
    screen.close()
    return screen.rows()


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("by", ["day", "project", "session"])
def test_rows_fit_a_terminal(by: str, width: int, everything: Path) -> None:
    found = rows(everything, by, width)
    assert [row for row in found if cell_count(row) > width] == []
    table = found[: found.index("")]
    total = loaded("--by", by, everything)["total"]["cost"]["usd"]
    assert table[0].startswith(by)
    assert f"${total:.2f}" in table[-1]
    assert ("█" in table[1]) == (by == "day")


def test_a_terminal_without_blocks_has_bars_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(answer("claude-opus-5-5"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [*COMMAND, "usage", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[1].endswith("$4.00  " + "#" * 40)


def test_columns_that_do_not_fit_go_and_names_are_cut() -> None:
    names = Column("path", ["/home/user/日本/project", "x"])
    columns = [Column("many", ["1", "22"], 1), Column("cost", ["$1", "$2"])]
    assert laid_out(names, columns, (), None)[1:] == [
        "/home/user/日本/project     1    $1",
        "x                          22    $2",
    ]
    for width in range(8, 60):
        assert all(cell_count(row) <= width for row in laid_out(names, columns, (1, 0.5), width, keep_end=True))
        assert all(cell_count(row) <= width for row in laid_out(names, columns, (1, 0.5), width))
    assert fitted("日本日本", 5) == "日本…"
    assert fitted("日本日本", 4, keep_end=True) == "…本"


def test_a_look_at_an_index_imports_neither_rich_nor_transcripts(tmp_path: Path) -> None:
    """Imports take most of the command's start time."""
    (tmp_path / "s.jsonl").write_bytes(answer("a"))
    shown(tmp_path)
    script = (
        "import sys; sys.argv[1:] = ['usage', sys.argv[1]]; from claude_wire_kit.commands.app import invoke; invoke(); "
        "print([name for name in ('rich', 'anyio', 'asyncio', 'claude_wire.transcripts', 'claude_wire.columns') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--json", "--csv"], "--json and --csv exclude each other"),
        (["--since", "2026-05-02", "--until", "2026-05-01"], "--since 2026-05-02 is after --until 2026-05-01"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(arguments: list[str], reason: str, tmp_path: Path) -> None:
    done = run(*arguments, tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in done.stderr


def test_a_folder_without_transcripts_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no transcript")
    done = run(tmp_path)
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"no transcripts (.jsonl files) found below {tmp_path}. The CLI keeps them in" in done.stderr


# --- If ``claude-wire usage`` is killed while it writes its index, the next run has the right sums --------------------


#: The number of kills, and the number of answers that each file gains before each kill. The answers fill more pages of
#: the index than SQLite keeps in memory, so SQLite also writes pages before the transaction ends.
KILLS, ANSWERS = (100, 400) if LONG else (10, 400)
FILES = 12


def grow(folder: Path, times: int) -> None:
    """Add answers to each file. Every tenth answer is in all files, as after a fork."""
    for file in range(FILES):
        lines: list[bytes] = []
        for number in range(ANSWERS):
            id = f"{times}-{number if number % 10 == 0 else (file, number)}"
            message = {"id": id, "model": "m", "role": "assistant", "content": [], "usage": {"output_tokens": 1}}
            record = {"type": "assistant", "uuid": id, "sessionId": f"s{file}", "requestId": id, "message": message}
            lines.append(line({**record, "timestamp": "2026-01-02T03:04:05Z"}))
        with open(folder / f"{file}.jsonl", "ab") as opened:
            opened.write(b"".join(lines))


def test_the_next_run_has_the_right_sums_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    folder, cache = tmp_path / "projects", tmp_path / "cache"
    folder.mkdir()
    command = [sys.executable, "-m", "claude_wire_kit", "usage", "--by", "model", "--csv", str(folder)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}

    def whole() -> str:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
        assert done.stderr == ""  # no note about a damaged index
        return done.stdout

    grow(folder, 0)
    began = time.monotonic()
    whole()
    usual = time.monotonic() - began
    chance = random.Random(17)
    killed = 0
    for times in range(1, KILLS + 1):
        grow(folder, times)
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                # Kill the first process immediately, and the others at any moment.
                process.wait(usual * chance.uniform(0.3, 1.1) if times > 1 else 0)
            except subprocess.TimeoutExpired:
                process.kill()
            assert process.stderr is not None
            assert process.stderr.read() == b""
        killed += process.returncode == -signal.SIGKILL
        answers = (times + 1) * (FILES * ANSWERS * 9 // 10 + ANSWERS // 10)
        assert whole().splitlines()[1].startswith(f"m,{answers},0,{answers},")
    assert killed > 0
    assert list(cache.rglob("*-journal")) == []
