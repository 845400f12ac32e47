"""When two things are the same: two conversations held twice, and one line read by two libraries."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from places import Place

__all__ = ["comparable", "plain"]

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: A socket that the CLI names after its process.
SOCKET = re.compile(r"\d+\.sock\b")
#: What is different each time: milliseconds and moments.
TIMES = re.compile(r".*_ms$|.*Ms$|^timestamp$|^time$|^elapsed.*|^durationSeconds$")


def plain(value: Any) -> Any:
    """A message of either library as plain values, with the name of each class in it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
        return {"class": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def comparable(value: Any, place: Place) -> Any:
    """Plain values without what two runs of the same conversation cannot share: ids, times, folders, the port."""
    value = plain(value)
    if isinstance(value, dict):
        return {
            comparable(key, place): "<time>" if TIMES.match(key) and item is not None else comparable(item, place)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [comparable(item, place) for item in value]
    if isinstance(value, str):
        return _text(value, place)
    return value


def _text(value: str, place: Place) -> str:
    replaced = (
        (str(place.work), "<work>"),
        (re.sub(r"[^0-9A-Za-z]", "-", str(place.work)), "<work>"),
        (str(place.home), "<home>"),
        (place.url.removeprefix("http://"), "<api>"),
    )
    for found, written in replaced:
        value = value.replace(found, written)
    return SOCKET.sub("<pid>.sock", UUID.sub("<uuid>", value))
