"""The native reader accepts the same JSON values as msgspec for each type, and makes the same Python values of them.

``TABLE`` says which values a type accepts. Then each field of each class gets each of these values.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
import pytest

from claude_wire import Decoder
from claude_wire.codec.engines import are_same, engine_of
from claude_wire.messages.base import Number, Wire, wire_fields
from claude_wire.messages.tolerant import Findings
from claude_wire.messages.vocabulary import Family, vocabulary_of
from claude_wire.native.functions import functions
from each import each
from examples import CLASSES, full

if not functions():
    pytest.skip("msgspec decodes here", allow_module_level=True)


class Part(Wire, frozen=True):
    a: int = 0


#: The types of the columns of TABLE.
TYPES: list[Any] = [str, int, float, Number, bool, str | None, Literal["x"], list[int], dict[str, int], Part, Any]
#: ``+`` is accepted, and becomes what json.loads() makes of it. Another word is the repr() of what it becomes. ``-`` is
#: refused. The native reader leaves an integer of more than 64 bits (``m``) to msgspec, which accepts it.
TABLE = """
                      str int float Number bool str|None Literal list dict Part      Any
null                  -   -   -     -      -    +        -       -    -    -         +
true                  -   -   -     -      +    -        -       -    -    -         +
false                 -   -   -     -      +    -        -       -    -    -         +
0                     -   +   0.0   +      -    -        -       -    -    -         +
-1                    -   +   -1.0  +      -    -        -       -    -    -         +
1.0                   -   -   +     +      -    -        -       -    -    -         +
-0.0                  -   -   +     +      -    -        -       -    -    -         +
1.5                   -   -   +     +      -    -        -       -    -    -         +
1e2                   -   -   +     +      -    -        -       -    -    -         +
18446744073709551616  -   m   m     m      -    -        -       -    -    -         m
""                    +   -   -     -      -    +        -       -    -    -         +
"x"                   +   -   -     -      -    +        +       -    -    -         +
"1"                   +   -   -     -      -    +        -       -    -    -         +
"\\ud83d"              -   -   -     -      -    -        -       -    -    -         -
[]                    -   -   -     -      -    -        -       +    -    -         +
[1]                   -   -   -     -      -    -        -       +    -    -         +
[[["x"]]]             -   -   -     -      -    -        -       -    -    -         +
{}                    -   -   -     -      -    -        -       -    +    Part(a=0) +
{"a":1}               -   -   -     -      -    -        -       -    +    Part(a=1) +
{"a":[{"b":null}]}    -   -   -     -      -    -        -       -    -    -         +
"""
HEAD, *ROWS = [line.split() for line in TABLE.strip().splitlines()]
#: Each column's name -> its type, and a value that this type accepts.
COLUMNS = {
    name: (hint, next(value for value, *cells in ROWS if cells[at] not in "-m"))
    for at, (name, hint) in enumerate(zip(HEAD, TYPES, strict=True))
}
VALUES = [value for value, *_ in ROWS]
LEFT_TO_MSGSPEC = [value for value, *cells in ROWS if "m" in cells]


class OfType(Family, frozen=True):
    """The base of a class for each column."""


class OfClass(Family, frozen=True):
    """The base of a class for each public class, which is its only part."""


def line_class(family: type[Family], name: str, hint: Any) -> type[Any]:
    """Return a class for lines of the type ``name``, whose only field ``it`` has the type ``hint``."""
    return msgspec.defstruct(name, [("it", hint)], bases=(family,), tag=name, frozen=True)


OF_TYPE = {name: line_class(OfType, name, hint) for name, (hint, _) in COLUMNS.items()}
OF_CLASS = {cls: line_class(OfClass, cls.__name__, cls) for cls in CLASSES}


def line(name: str, value: str) -> bytes:
    return f'{{"type":"{name}","it":{value}}}'.encode()


def read(family: type[Family], line: bytes) -> Any:
    """Return the native reader's message, or None if it refuses the line."""
    return engine_of(vocabulary_of(family)).read_line(line)


def make_plans(family: type[Family], line: bytes) -> None:
    """Show the reader this line of a new class, so that the reader can read the next one."""
    Decoder(family).feed(line + b"\n")
    assert read(family, line) is not None


def by_msgspec(line: bytes, cls: type[Any]) -> Any:
    try:
        return msgspec.json.decode(line, type=cls)
    except msgspec.DecodeError:
        return None


@each("name", COLUMNS, str)
def test_a_type_accepts_the_values_of_the_table(name: str) -> None:
    make_plans(OfType, line(name, COLUMNS[name][1]))
    for value, *cells in ROWS:
        cell = cells[HEAD.index(name)]
        found = read(OfType, line(name, value))
        expected = by_msgspec(line(name, value), OF_TYPE[name])
        assert (expected is None) == (cell == "-"), value
        assert (found is None) == (cell in "-m"), value
        if found is not None:
            becomes = repr(json.loads(value)) if cell == "+" else cell
            assert repr(found.it) == repr(expected.it) == becomes, value


@each("cls", [cls for cls in CLASSES if wire_fields(cls)])
def test_each_field_of_each_class_accepts_the_same_values(cls: type[Wire]) -> None:
    whole = full(cls)
    make_plans(OfClass, line(cls.__name__, json.dumps(whole)))
    strict = msgspec.json.Decoder(OF_CLASS[cls]).decode
    for field in wire_fields(cls):
        before, after = json.dumps({**whole, field.encode_name: "HERE"}).split('"HERE"')
        for value in VALUES:
            given = line(cls.__name__, before + value + after)
            found = read(OfClass, given)
            if value in LEFT_TO_MSGSPEC:
                assert found is None, (field.name, value)
                continue
            try:
                expected = strict(given)
            except msgspec.DecodeError:
                expected = None
                if found is not None and value.startswith("{"):
                    # The native reader keeps an unknown key, as the library does after msgspec has refused it.
                    expected = vocabulary_of(OfClass).build(json.loads(given), Findings())
            assert are_same(found, expected), (field.name, value)
