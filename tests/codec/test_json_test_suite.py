"""JSONTestSuite (https://github.com/nst/JSONTestSuite): no document may affect the lines around it.

Its files are in ``data/json_test_suite``, unchanged, under their own licence. Those that begin with ``y_`` must be
accepted by a JSON parser, those with ``n_`` refused; of those with ``i_`` the standard leaves it open, and
``docs/json-test-suite.md`` says what each library does.
``PYTHONPATH=tests/support python tests/codec/test_json_test_suite.py`` writes that page anew.
"""

from __future__ import annotations

import json
import lzma
import tarfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from claude_wire import Decoder, InvalidLine, Message, UserMessage
from each import each
from folders import DATA, ROOT

ARCHIVE = DATA / "json_test_suite" / "test_parsing.tar.xz"
PAGE = ROOT / "docs" / "json-test-suite.md"


def _files() -> Iterator[tuple[str, bytes]]:
    with lzma.open(ARCHIVE) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                yield member.name.rpartition("/")[2].removesuffix(".json"), content.read()


FILES = dict(_files())
GOOD = b'{"type":"user","message":{"role":"user","content":"good"}}\n'
BLANK = b" \t\r"


def within(data: bytes) -> bytes:
    """Return a message with the document in a field that its class does not know."""
    return GOOD.rstrip(b"}\n") + b'},"x":' + data + b"}\n"


def chunkings(stream: bytes) -> Iterator[list[bytes]]:
    for size in (len(stream), 4096, 61, *([1] if len(stream) < 5000 else [])):
        yield [stream[start : start + size] for start in range(0, len(stream), size)]


def decoded(chunks: list[bytes], kind: Any) -> list[Any]:
    decoder: Decoder[Any] = Decoder(kind)
    return [message for chunk in chunks for message in decoder.feed(chunk)] + decoder.close()


def test_no_file_is_missing() -> None:
    assert len(FILES) == 318
    assert {kind: sum(name.startswith(kind) for name in FILES) for kind in ("y_", "n_", "i_")} == {
        "y_": 95,
        "n_": 188,
        "i_": 35,
    }


@pytest.mark.parametrize("kind", [Message, dict], ids=["typed", "dict"])
@each("name", FILES, str)
class TestBetweenTwoGoodLines:
    def check(self, data: bytes, kind: Any) -> list[Any]:
        """Decode ``data`` between two good lines, cut in several ways, and return the messages of ``data``."""
        (good,) = decoded([GOOD], kind)
        stream = GOOD + data + GOOD
        found = decoded([stream], kind)
        for chunks in chunkings(stream):
            assert decoded(chunks, kind) == found
        assert [found[0], found[-1]] == [good, good]
        # Each line that is not blank gives one message, and an invalid line keeps its bytes.
        lines = [line for line in data.split(b"\n") if line.strip(BLANK)]
        middle = found[1:-1]
        assert len(middle) == len(lines)
        for line, item in zip(lines, middle, strict=True):
            if isinstance(item, InvalidLine):
                assert item.raw == line
                assert stream[item.offset :].startswith(line + b"\n")
                assert stream[: item.offset].count(b"\n") + 1 == item.line_number
        return middle

    def test_as_a_line(self, name: str, kind: Any) -> None:
        data = FILES[name].removesuffix(b"\n") + b"\n"
        middle = self.check(data, kind)
        if data.count(b"\n") == 1 and data.lstrip(BLANK).startswith(b"{") and name[0] in "yn":
            assert [isinstance(item, InvalidLine) for item in middle] == [name.startswith("n_")]

    def test_within_an_object(self, name: str, kind: Any) -> None:
        data = within(FILES[name])
        middle = self.check(data, kind)
        if data.count(b"\n") == 1 and name[0] in "yn":
            # A document in an unknown field must be accepted or refused in the same way.
            (item,) = middle
            assert isinstance(item, InvalidLine) == name.startswith("n_")
            if isinstance(item, dict):
                assert item["x"] == json.loads(FILES[name])
            elif name.startswith("y_"):
                assert isinstance(item, UserMessage)


# --- What each library takes ------------------------------------------------------------------------------------------


def _claude_wire(data: bytes) -> None:
    found = Decoder(dict, on_invalid="raise").feed(data + b"\n")
    if len(found) != 1:
        raise ValueError("not one line")


def _json(data: bytes) -> None:
    json.loads(data)


def _orjson(data: bytes) -> None:
    import orjson

    orjson.loads(data)


def _msgspec(data: bytes) -> None:
    import msgspec

    msgspec.json.decode(data)


LIBRARIES: dict[str, Callable[[bytes], None]] = {
    "claude_wire": _claude_wire,
    "json": _json,
    "orjson": _orjson,
    "msgspec": _msgspec,
}


def accepts(library: str, name: str) -> bool:
    try:
        LIBRARIES[library](b'{"x":' + FILES[name] + b"}")
    except (ValueError, RecursionError):  # each library has its own subclass of ValueError
        return False
    return True


def rows() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the first cell of each row of the page's tables, with library -> the row's cell."""
    installed = [library for library in LIBRARIES if find_spec(library)]
    for kind in ("y_", "n_"):
        names = [name for name in FILES if name.startswith(kind)]
        for split in (False, True):
            some = [name for name in names if (b"\n" in FILES[name]) == split]
            which = f"{len(some)} files `{kind}`" + (" with line feeds" if split else "")
            yield which, {library: f"{sum(accepts(library, name) for name in some)} accepted" for library in installed}
    for name in FILES:
        if name.startswith("i_"):
            words = {library: "accepted" if accepts(library, name) else "refused" for library in installed}
            yield f"`{name}`", words


INTRODUCTION = """\
# JSONTestSuite

How four libraries decode the 318 documents of [JSONTestSuite](https://github.com/nst/JSONTestSuite), each as a value in
an object, `{"x": …}`. The standard requires parsers to accept the files `y_` and to refuse `n_`; it leaves `i_` open. A
document with a raw line feed is several lines, which are not objects. json accepts `NaN` and infinities, and reads
numbers out of range as infinities.
"""


def page() -> str:
    """Return the page. Files that all libraries treat alike share one row."""
    head = f"| documents | {' | '.join(LIBRARIES)} |\n|---|{'---|' * len(LIBRARIES)}\n"
    alike: dict[str, str] = {}
    for first, cells in rows():
        words = " | ".join(cells[library] for library in LIBRARIES)
        alike[words] = f"{alike[words]}, {first}" if words in alike and first.startswith("`") else first
    lines = [f"| {names} | {words} |\n" for words, names in alike.items()]
    return f"{INTRODUCTION}\n{head}{''.join(lines)}"


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(INTRODUCTION)
    head, _, *lines = (line.strip("| ").split(" | ") for line in text[len(INTRODUCTION) :].split("\n") if line)
    assert head == ["documents", *LIBRARIES]
    committed = {
        name: dict(zip(LIBRARIES, cells, strict=True))
        for first, *cells in lines
        for name in (first.split(", ") if first.startswith("`") else [first])
    }
    expected = dict(rows())
    # Only the columns of installed libraries can be checked.
    assert {
        first: {library: committed.get(first, {}).get(library) for library in cells}
        for first, cells in expected.items()
    } == expected
    assert committed.keys() == expected.keys()


def test_what_must_be_accepted_or_refused_is() -> None:
    for name, data in FILES.items():
        if b"\n" in data:
            assert not accepts("claude_wire", name)
        elif name[0] in "yn":
            assert accepts("claude_wire", name) == name.startswith("y_")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
