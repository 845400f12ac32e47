"""Compare two runs of the same conversation, or the same line as two libraries read it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from places import Place

__all__ = ["comparable", "plain"]

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: A socket that the CLI names after its process.
SOCKET = re.compile(r"\d+\.sock\b")
#: Fields with ids that the CLI generates. These ids also occur in texts and paths.
IDS = re.compile(r"^(task_id|run_id|agent_id)$")
#: Fields that differ in every run: durations, times, and process ids.
TIMES = re.compile(r".*_ms$|.*Ms$|^timestamp$|^time$|^end_time$|^elapsed.*|^durationSeconds$|^pid$")
#: Durations and times inside a text.
TEXT_TIMES = re.compile(r"(duration \(\w+\): +|duration_ms: )[\dhms. ]+")
#: The id of a hook callback, which each host chooses.
HOOK = re.compile(r"(?<=Hook callback )\S+")


def plain(value: Any) -> Any:
    """Convert a message of either library to plain values that include its class names."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
        return {"class": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def comparable(value: Any, place: Place) -> Any:
    """Plain values without what two runs of the same conversation cannot share: ids, times, folders, the port.

    Each id becomes its number in the order of first use, so an id in the wrong place makes a difference.
    """
    value = plain(value)
    replaced = {
        str(place.work): "<work>",
        re.sub(r"[^0-9A-Za-z]", "-", str(place.work)): "<work>",
        str(place.home): "<home>",
        place.url.removeprefix("http://"): "<api>",
    }
    for id in _ids(value):
        replaced.setdefault(id, f"<id {len(replaced)}>")
    return _replace(value, replaced)


def _ids(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if IDS.match(key) and isinstance(item, str):
                yield item
            else:
                yield from _ids(item)
    elif isinstance(value, list):
        for item in value:
            yield from _ids(item)


def _replace(value: Any, replaced: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            _replace(key, replaced): "<time>" if TIMES.match(key) and item is not None else _replace(item, replaced)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_replace(item, replaced) for item in value]
    if isinstance(value, str):
        for found, written in replaced.items():
            value = value.replace(found, written)
        value = HOOK.sub("<hook>", SOCKET.sub("<pid>.sock", UUID.sub("<uuid>", value)))
        return TEXT_TIMES.sub(r"\1<time>", value)
    return value
