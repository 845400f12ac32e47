"""The changelog of ``protocol`` lists the differences between two versions of the folder."""

from __future__ import annotations

import copy
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from folders import ROOT
from protocol.compare import compared, entry_name
from verdicts import FOLDER, load

Files = dict[str, Any]


def folder() -> Files:
    return {path.name: copy.deepcopy(load(path.name)) for path in FOLDER.glob("*.json")}


def definition(files: Files, name: str) -> Any:
    return files["output.schema.json"]["$defs"][name]


def entry(files: Files, name: str) -> Any:
    return next(one for one in files["index.json"]["definitions"] if one["name"] == name)


def test_a_folder_does_not_differ_from_itself() -> None:
    found = compared(folder(), folder())
    assert [found[key] for key in ("added", "removed", "changed", "flags")] == [[], [], [], []]


def _new_field(files: Files) -> None:
    definition(files, "KeepAlive")["properties"]["beat"] = {"type": "integer"}


def _other_type(files: Files) -> None:
    definition(files, "TextBlock")["properties"]["text"] = {"type": ["string", "null"]}


def _now_optional(files: Files) -> None:
    definition(files, "TextBlock")["required"].remove("text")


def _new_word(files: Files) -> None:
    entry(files, "InitMessage")["open_words"]["view_mode"].append("wide")


def _other_sender(files: Files) -> None:
    entry(files, "KeepAlive")["sent_by"] = "agent"


def _other_answer(files: Files) -> None:
    entry(files, "InterruptRequest")["answer"] = []


CHANGES: list[tuple[Callable[[Files], None], dict[str, Any]]] = [
    (_new_field, {"change": "new", "field": "beat", "to": {"type": "integer"}, "in": ["KeepAlive"]}),
    (
        _other_type,
        {
            "change": "type",
            "field": "text",
            "from": {"type": "string"},
            "to": {"type": ["string", "null"]},
            "in": ["TextBlock"],
        },
    ),
    (_now_optional, {"change": "optional", "field": "text", "in": ["TextBlock"]}),
    (_new_word, {"change": "words", "field": "view_mode", "added": ["wide"], "removed": [], "in": ["InitMessage"]}),
    (_other_sender, {"change": "sent_by", "from": "both", "to": "agent", "in": ["KeepAlive"]}),
    (_other_answer, {"change": "answer", "from": ["InterruptResponse"], "to": [], "in": ["InterruptRequest"]}),
]


@pytest.mark.parametrize(("change", "wanted"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_change_is_found(change: Callable[[Files], None], wanted: dict[str, Any]) -> None:
    after = folder()
    change(after)
    assert compared(folder(), after)["changed"] == [wanted]


def test_a_field_that_went_is_found() -> None:
    before = folder()
    _new_field(before)
    [found] = compared(before, folder())["changed"]
    assert found == {"change": "gone", "field": "beat", "from": {"type": "integer"}, "in": ["KeepAlive"]}


def test_the_same_change_of_several_definitions_is_one() -> None:
    after = folder()
    for name in ("TextBlock", "ThinkingBlock"):
        definition(after, name)["properties"]["language"] = {"type": "string"}
    [found] = compared(folder(), after)["changed"]
    assert found["in"] == ["TextBlock", "ThinkingBlock"]


def test_definitions_and_flags_that_come_and_go_are_found() -> None:
    after = folder()
    after["index.json"]["cli"] = "3.0.0"
    after["index.json"]["definitions"].remove(entry(after, "KeepAlive"))
    new = {**entry(after, "InitMessage"), "name": "TeaMessage", "kind": "system/tea"}
    after["index.json"]["definitions"].append(new)
    after["output.schema.json"]["$defs"]["TeaMessage"] = definition(after, "InitMessage")
    gone = after["flags.json"]["flags"].pop(0)
    found = compared(folder(), after)
    assert found["added"] == [{"name": "TeaMessage", "group": "message", "kind": "system/tea"}]
    assert found["removed"] == [{"name": "KeepAlive", "group": "message", "kind": "keep_alive"}]
    assert found["flags"] == [{"change": "gone", "field": gone["flag"], "from": gone["value"]}]
    assert entry_name(found) == f"{load('index.json')['cli']}-3.0.0.json"


def test_words_for_people_and_open_sets_are_no_change() -> None:
    after = folder()
    definition(after, "KeepAlive")["description"] = "Other words."
    properties = definition(after, "TextBlock")["properties"]
    properties["text"]["description"] = "Other words."
    choices = properties["cache_control"]["anyOf"]
    properties["cache_control"]["anyOf"] = [one for one in choices if "AnyOther" not in str(one)]
    assert len(choices) > len(properties["cache_control"]["anyOf"])
    assert compared(folder(), after)["changed"] == []


def test_it_is_a_command(tmp_path: Path) -> None:
    after = folder()
    _new_field(after)
    for name, content in after.items():
        (tmp_path / name).write_text(json.dumps(content))
    command = [sys.executable, "-m", "protocol.compare", str(FOLDER), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT / "tools")
    assert [change["field"] for change in json.loads(done.stdout)["changed"]] == ["beat"]


def test_the_entries_lead_from_one_version_to_the_next() -> None:
    entries = [load(f"changelog/{path.name}") for path in (FOLDER / "changelog").glob("*.json")]
    entries.sort(key=lambda one: [int(number) for number in one["from"].split(".")])
    for earlier, later in itertools.pairwise(entries):
        assert earlier["to"] == later["from"]
    assert entries[-1]["to"] == load("index.json")["cli"]
