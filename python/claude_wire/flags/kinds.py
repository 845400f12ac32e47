"""The kinds of flag values, such as numbers, paths and JSON objects. A kind writes a value as text and reads text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

Path: TypeAlias = "str | os.PathLike[str]"
#: A JSON object, its text, or the path of a file that contains it. Some CLI flags accept any of these.
FileOrJson: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


class Kind(NamedTuple):
    """A kind of value, with its conversion to and from the command line."""

    #: The accepted Python types, for error messages.
    takes: str
    #: Converts a value to strings. The flag is written once for each string. Returns None if the type is wrong.
    write: Callable[[Any], list[str] | None]
    #: Converts a string to a value; with ``several``, to a tuple of items. Raises ValueError for an invalid string.
    read: Callable[[str], Any] = str
    #: Describes a valid string, such as ``a number``, for error messages. Empty if ``read`` accepts any string.
    expects: str = ""
    #: True if the flag may be repeated: its value is then a tuple of all items.
    several: bool = False


def is_path(value: Any) -> bool:
    """Return True for a str, or for an ``os.PathLike`` whose path is a str."""
    return isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str)


def is_items(value: Any) -> bool:
    """Return True for a sequence of values, but not for a str or bytes."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _text(value: Any) -> list[str] | None:
    return [value] if isinstance(value, str) else None


def _whole(value: Any) -> list[str] | None:
    return [str(value)] if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> list[str] | None:
    # Refuse NaN, because a run would never exceed a budget of NaN.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return [json.dumps(value, allow_nan=False)] if is_number else None


def _read_number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)


def _path(value: Any) -> list[str] | None:
    return [os.fspath(value)] if is_path(value) else None


def _paths(value: Any) -> list[str] | None:
    return [os.fspath(path) for path in value] if is_items(value) and all(map(is_path, value)) else None


def _one(text: str) -> tuple[str, ...]:
    return (text,)


def _list(value: Any) -> list[str] | None:
    return [",".join(value)] if is_items(value) and all(isinstance(item, str) for item in value) else None


#: Matches a name, or a rule with its parentheses: ``Bash(git log, git diff)``.
_ITEM = re.compile(r"(?:\([^()]*\)|[^,\s])+")


def _read_list(text: str) -> tuple[str, ...]:
    return tuple(_ITEM.findall(text))


def _json(value: Any) -> list[str] | None:
    # json.dumps writes ASCII, so even a lone surrogate, which the command line cannot carry, becomes an escape.
    if not isinstance(value, Mapping):
        return _text(value)
    return [json.dumps({**value}, allow_nan=False, default=_plain)]


def _plain(value: Any) -> Any:
    """Convert a value with a ``to_dict`` method, such as an ``AgentDefinition``, to a dict."""
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    raise TypeError(type(value).__name__)


def _read_json(text: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(text)
        json.dumps(value, allow_nan=False)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("the JSON is not an object")
    return cast("dict[str, Any]", value)


def _file_or_json(value: Any) -> list[str] | None:
    return _path(value) or _json(value)


def _read_file_or_json(text: str) -> str | dict[str, Any]:
    try:
        return _read_json(text)
    except ValueError:
        return text


def _read_files_or_json(text: str) -> tuple[str | dict[str, Any]]:
    return (_read_file_or_json(text),)


def _files_or_json(value: Any) -> list[str] | None:
    if not is_items(value):
        return _file_or_json(value)
    texts = [_file_or_json(item) for item in value]
    return None if None in texts else [text for one in texts for text in one or ()]


def _nothing(value: Any) -> list[str] | None:
    return [] if isinstance(value, bool) else None


def _nothing_or_text(value: Any) -> list[str] | None:
    return _nothing(value) if isinstance(value, bool) else _text(value)


BOOL = Kind("bool", _nothing)
#: True writes only the flag, as in ``--debug``; a string is joined to it, as in ``--debug=api,hooks``.
BOOL_OR_TEXT = Kind("bool or str", _nothing_or_text)
TEXT = Kind("str", _text)
INT = Kind("int", _whole, int, "an integer")
NUMBER = Kind("number", _number, _read_number, "a number")
LIST = Kind("list of str", _list, _read_list, several=True)
PATH = Kind("path", _path)
PATHS = Kind("sequence of paths", _paths, _one, several=True)
JSON = Kind("str or mapping", _json, _read_json, "a JSON object")
FILE_OR_JSON = Kind("path, str or mapping", _file_or_json, _read_file_or_json)
FILES_OR_JSON = Kind("path, str or mapping, or sequence of them", _files_or_json, _read_files_or_json, several=True)
