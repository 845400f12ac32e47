"""Build a test case from one line, and find a line's kind."""

# JSON values are Any; after isinstance, pyright still sees partially unknown types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
from typing import Any, TypeAlias

__all__ = ["Case", "kind_of", "line_case"]

Case: TypeAlias = dict[str, Any]


def line_case(name: str, schema: str, value: Any, verdict: str, **more: Any) -> Case:
    """Return a case with one line, and the verdict that a decoder must reach for it."""
    expected = {"verdict": verdict, **kind_of(value), **more, "line": 1, "offset": 0}
    return {"name": name, "schema": schema, "text": json.dumps(value) + "\n", "expect": [expected]}


def kind_of(value: dict[str, Any]) -> dict[str, Any]:
    """Return the ``kind``, ``type`` and ``subtype`` of a line, such as ``control_request/interrupt``."""

    def tag(holder: Any, key: str) -> str | None:
        found = holder.get(key) if isinstance(holder, dict) else None
        return found if isinstance(found, str) else None

    type_ = tag(value, "type")
    if type_ is None:
        return {"kind": "", "type": None, "subtype": None}
    detail = None
    match type_:
        case "stream_event":
            event = value.get("event")
            subtype = tag(event, "type")
            if isinstance(event, dict):
                detail = tag(event.get("delta"), "type") or tag(event.get("content_block"), "type")
        case "control_request":
            subtype = tag(value.get("request"), "subtype")
        case "control_response":
            subtype = tag(value.get("response"), "subtype")
        case _:
            subtype = tag(value, "subtype")
    return {"kind": "/".join(filter(None, (type_, subtype, detail))), "type": type_, "subtype": subtype}
