"""Recorded lines with one change: a key removed, added or given another type, another tag, or one more list item.

A changed line is still a JSON object, so both the decoder and the schemas have to judge it. The same seed gives the
same lines.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from verdicts import load

__all__ = ["CHANGES", "Spoilt", "spoilt_lines"]

#: The keys whose values decide the class of an object.
TAGS = ("type", "subtype", "hook_event_name", "behavior", "hookEventName", "kind")
VALUES: list[Any] = [None, True, False, 0, 1, 1.0, 1.5, -1, "", "text", [], {}, [1], ["text"], {"type": "text"}, [{}]]
#: A container, and the key or index of a value in it.
Place = tuple[Any, Any]


class Spoilt(NamedTuple):
    """A changed line."""

    schema: str
    #: The kind of the line before the change.
    kind: str
    change: str
    value: dict[str, Any]


def _places(value: Any) -> Iterator[Place]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield value, step
        yield from _places(item)


def _tags(value: Any) -> list[Place]:
    return [(holder, step) for holder, step in _places(value) if step in TAGS and isinstance(holder[step], str)]


def _at(choose: Callable[[Any], list[Place]], change: Callable[[Any, Any, random.Random], None]) -> Any:
    def apply(value: Any, rng: random.Random) -> None:
        if places := choose(value):
            change(*rng.choice(places), rng)

    return apply


def _all(value: Any) -> list[Place]:
    return list(_places(value))


def _set(new: Callable[[Any, random.Random], Any]) -> Callable[[Any, Any, random.Random], None]:
    def change(holder: Any, step: Any, rng: random.Random) -> None:
        holder[step] = new(holder[step], rng)

    return change


def _remove(holder: Any, step: Any, rng: random.Random) -> None:
    del holder[step]


def _rename(holder: Any, step: Any, rng: random.Random) -> None:
    if isinstance(holder, dict):
        holder[f"{step}_of_tomorrow"] = holder.pop(step)


def _repeat(holder: Any, step: Any, rng: random.Random) -> None:
    if isinstance(holder, list):
        holder.append(rng.choice([copy.deepcopy(holder[step]), *VALUES]))


def _known_tags() -> list[str]:
    index = load("index.json")
    return sorted({tag for entry in index["definitions"] for tag in entry.get("tags", {}).values()})


CHANGES: dict[str, Callable[[Any, random.Random], None]] = {
    "a value of another type": _at(_all, _set(lambda old, rng: rng.choice(VALUES))),
    "a key gone": _at(_all, _remove),
    "a key renamed": _at(_all, _rename),
    "a value in a list": _at(_all, _set(lambda old, rng: [old])),
    "an item added": _at(lambda value: [p for p in _places(value) if isinstance(p[0], list)], _repeat),
    "an unknown tag": _at(_tags, _set(lambda old, rng: "of_tomorrow")),
    "another known tag": _at(_tags, _set(lambda old, rng: rng.choice(_known_tags()))),
    "a tag of another type": _at(_tags, _set(lambda old, rng: rng.choice(VALUES))),
    "a tag gone": _at(_tags, _remove),
}


def spoilt_lines(count: int, seed: int) -> Iterator[Spoilt]:
    """Yield changed lines from the corpus: recorded lines, and lines with every key.

    Each kind of change is used equally often.
    """
    files = ("recorded", "output", "input", "records")
    cases = [case for file in files for case in load(f"corpus/{file}.json")["cases"]]
    rng = random.Random(seed)
    names = [*CHANGES]
    for number in range(count):
        case = rng.choice(cases)
        value = json.loads(case["text"])
        CHANGES[names[number % len(names)]](value, rng)
        yield Spoilt(case["schema"], case["expect"][0]["kind"], names[number % len(names)], value)
