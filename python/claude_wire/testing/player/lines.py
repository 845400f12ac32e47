"""Parse the lines that the player must understand: prompts, results, control requests and control responses.

This module also parses the flags that set the input format.
"""

from __future__ import annotations

import itertools
import json

TYPE_CHECKING = False  # do not import typing, which is slow
if TYPE_CHECKING:
    from typing import Any, NoReturn


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


#: Rejects NaN and Infinity, as the CLI does. Python's own decoder accepts them.
_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


class Line:
    """The parts of an input or output line that the player needs.

    kind: ``user``, ``result``, ``request``, ``response``, ``garbage`` (not JSON), or empty for any other line.
    subtype: the subtype of a request.
    identity: the id of a request, or the id of the request that a response answers.
    hooks: the hook ids of an ``initialize`` request, by (event, index of the matcher, index within the matcher).
    """

    __slots__ = ("hooks", "identity", "kind", "subtype")

    def __init__(self, data: bytes) -> None:
        self.kind: str = ""
        self.subtype: str = ""
        self.identity: str = ""
        self.hooks: dict[tuple[str, int, int], str] = {}
        try:
            message = object_in(_JSON.decode(data.decode("utf-8", "replace").removeprefix("\ufeff")))
        except RecursionError:
            return
        except ValueError:
            self.kind = "garbage" if data.strip() else ""
            return
        tag = message.get("type")
        if tag in ("user", "result"):
            self.kind = tag
        elif tag == "control_request" and isinstance(message.get("request_id"), str):
            self.kind = "request"
            self.identity = message["request_id"]
            request = object_in(message.get("request"))
            self.subtype = str(request.get("subtype"))
            for event, matchers in object_in(request.get("hooks")).items():
                for index, matcher in enumerate(list_in(matchers)):
                    for number, id in enumerate(list_in(object_in(matcher).get("hookCallbackIds"))):
                        self.hooks[event, index, number] = str(id)
        elif tag == "control_response":
            identity = object_in(message.get("response")).get("request_id")
            if isinstance(identity, str):
                self.kind = "response"
                self.identity = identity


def object_in(value: Any) -> dict[str, Any]:
    """Return the value if it is a JSON object, else an empty one."""
    # The items may have any type. cast() would satisfy pyright, but it needs typing, which is slow to import.
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]  # see above


def list_in(value: Any) -> list[Any]:
    """Return the value if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]  # as object_in()


def with_id(data: bytes, recorded: str, live: str) -> bytes:
    """Replace the id ``recorded`` with ``live`` in an answer. All other bytes stay the same."""
    return data.replace(json.dumps(recorded).encode("ascii"), json.dumps(live).encode("ascii"), 1)


def with_hook(data: bytes, recorded: str, live: str) -> bytes:
    """Replace the id ``recorded`` with ``live`` in a hook call. All other bytes stay the same."""
    before, key, rest = data.partition(b'"callback_id"')
    return before + key + with_id(rest, recorded, live)


#: Flags that decide whether the CLI takes its prompt from an argument or from standard input.
INPUT_FLAGS = ("-p", "--print", "--input-format")


def says_input(flags: list[str]) -> bool:
    """Return True if the flags decide how the CLI gets its prompt. Other flags, such as ``--model``, do not."""
    return any(flag.partition("=")[0] in INPUT_FLAGS for flag in flags)


def speaks_stream_json(flags: list[str]) -> bool:
    """Return True if the flags make the CLI read JSON lines until its standard input ends."""
    return "--input-format=stream-json" in flags or ("--input-format", "stream-json") in itertools.pairwise(flags)
