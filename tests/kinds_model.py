"""What the kind of a line is, what ``only`` passes over and what ``coalesce`` merges: the rules, in the simplest words.

Slow, and meant to be read: one byte after another, no search, no regular expression, no JSON library. The library's
native code is compared with this. So nothing of the library may be imported here.

A line comes as bytes without its line feed. It cannot hold another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = [
    "UNCLEAR",
    "Delta",
    "Earning",
    "Kind",
    "coalesced",
    "delta",
    "is_blank",
    "is_other",
    "is_strict_json",
    "kind",
    "skipped",
]

WHITE_SPACE = b" \t\r"
#: What ends a value that is neither a string nor a container.
ENDS = b' \t\r,]}"{[:'
HEX = b"0123456789abcdefABCDEF"
DIGITS = b"0123456789"

Kind = tuple["str | None", "str | None", "str | None"]
UNCLEAR: Kind = (None, None, None)

#: The keys of the objects on a path that lead on to the next one, by the path.
PATHS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): ("event", "request", "response"),
    ("event",): ("delta", "content_block"),
}
#: The keys whose values are tags, by the path of their object.
TAGS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): ("type", "subtype"),
    ("request",): ("subtype",),
    ("response",): ("subtype",),
    ("event",): ("type",),
    ("event", "delta"): ("type",),
    ("event", "content_block"): ("type",),
}
#: Most deltas of different keys that are being merged at a time.
MOST_OPEN = 64
#: Most containers that are open at a time in a delta that may be merged, the line's own counted.
MOST_DEPTH = 64
#: Most bytes of a number in it.
MOST_DIGITS = 64
#: The key of a delta's text, by the delta's type.
TEXT_KEYS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class Unclear(Exception):
    """The line is not one object by structure, or its tags cannot be told."""


class Member(NamedTuple):
    """A member of an object on a path. Places are indices into the line."""

    #: The key without its quotes, as it stands in the line.
    key: bytes
    #: Where the value begins, and where it is over.
    start: int
    end: int


# --- The kind of a line -----------------------------------------------------------------------------------------------


def is_blank(line: bytes) -> bool:
    """Whether it has nothing but white space."""
    return all(byte in WHITE_SPACE for byte in line)


def kind(line: bytes) -> Kind:
    """Type, subtype and detail of a line."""
    try:
        objects = structure(line)
        tags = {(*path, key): tag(line, objects[path], key) for path in objects for key in TAGS[path]}
    except Unclear:
        return UNCLEAR
    first = tags["type",]
    if first is None:
        return UNCLEAR
    if first == "stream_event":
        detail = tags.get(("event", "delta", "type"))
        if detail is None:
            detail = tags.get(("event", "content_block", "type"))
        return first, tags.get(("event", "type")), detail
    if first == "control_request":
        return first, tags.get(("request", "subtype")), None
    if first == "control_response":
        return first, tags.get(("response", "subtype")), None
    return first, tags["subtype",], None


def kind_alone(line: bytes) -> Kind:
    """That of a line by itself, or of the first one of a stream: a byte order mark before it is passed over."""
    return kind(line.removeprefix(b"\xef\xbb\xbf"))


def skipped(line: bytes, names: Iterable[str]) -> bool:
    """Whether ``only=names`` passes over the line."""
    return is_other(kind(line), names)


def is_other(found: Kind, names: Iterable[str]) -> bool:
    """Whether a kind is certainly none of those that have these names."""
    if found[0] is None:
        return False
    for name in names:
        parts = tuple(name.split("/"))
        if found[: len(parts)] == parts:
            return False
    return True


def structure(line: bytes) -> dict[tuple[str, ...], list[Member]]:
    """The members of each object on a path, by the path."""
    at = after_white_space(line, 0)
    if not has(line, at, b"{"):
        raise Unclear
    objects: dict[tuple[str, ...], list[Member]] = {}
    at = after_object(line, at, (), objects)
    if after_white_space(line, at) != len(line):
        raise Unclear
    return objects


def after_object(line: bytes, at: int, path: tuple[str, ...], objects: dict[tuple[str, ...], list[Member]]) -> int:
    """The place after the object that begins at ``at`` and is on this path."""
    members: list[Member] = []
    objects[path] = members
    seen: list[str] = []
    at = after_white_space(line, at + 1)
    if has(line, at, b"}"):
        return at + 1
    while True:
        if not has(line, at, b'"'):
            raise Unclear
        key_end = after_string(line, at)
        key = line[at + 1 : key_end - 1]
        at = after_white_space(line, key_end)
        if not has(line, at, b":"):
            raise Unclear
        start = after_white_space(line, at + 1)
        name = unescaped(key)
        leads_on = None
        for step in PATHS.get(path, ()):
            if name == step.encode():
                leads_on = step
        if leads_on is not None and leads_on in seen:
            raise Unclear
        if leads_on is not None:
            seen.append(leads_on)
        if leads_on is not None and has(line, start, b"{"):
            at = after_object(line, start, (*path, leads_on), objects)
        else:
            at = after_value(line, start)
        members.append(Member(key, start, at))
        at = after_white_space(line, at)
        if has(line, at, b"}"):
            return at + 1
        if not has(line, at, b","):
            raise Unclear
        at = after_white_space(line, at + 1)


def after_value(line: bytes, at: int) -> int:
    if has(line, at, b'"'):
        return after_string(line, at)
    if has(line, at, b"{["):
        return after_container(line, at)
    start = at
    while at < len(line) and line[at] not in ENDS:
        at += 1
    if at == start:
        raise Unclear
    return at


def after_string(line: bytes, at: int) -> int:
    at += 1
    while at < len(line):
        if line[at] == ord("\\"):
            at += 2
        elif line[at] == ord('"'):
            return at + 1
        else:
            at += 1
    raise Unclear


def after_container(line: bytes, at: int) -> int:
    depth = 0
    while at < len(line):
        if line[at] == ord('"'):
            at = after_string(line, at)
            continue
        if line[at] in b"[{":
            depth += 1
        if line[at] in b"]}":
            depth -= 1
        at += 1
        if depth == 0:
            return at
    raise Unclear


def after_white_space(line: bytes, at: int) -> int:
    while at < len(line) and line[at] in WHITE_SPACE:
        at += 1
    return at


def has(line: bytes, at: int, which: bytes) -> bool:
    return at < len(line) and line[at] in which


def tag(line: bytes, members: list[Member], name: str) -> str | None:
    """The tag of that name, or None if it is absent or not a string."""
    values: list[str | None] = []
    for key, start, end in members:
        if unescaped(key) != name.encode():
            continue
        if line[start] != ord('"'):
            values.append(None)
            continue
        raw = line[start + 1 : end - 1]
        value = unescaped(raw)
        if value is None or any(byte < 0x20 for byte in raw):
            raise Unclear
        try:
            values.append(value.decode("utf-8"))
        except UnicodeDecodeError:
            raise Unclear from None
    for value in values:
        if value != values[0]:
            raise Unclear
    return values[0] if values else None


def unescaped(raw: bytes) -> bytes | None:
    """What a string means, in UTF-8 if it was; None if it has an escape that JSON does not know or half a pair."""
    units = code_units(raw)
    if units is None:
        return None
    out = b""
    at = 0
    while at < len(units):
        unit = units[at]
        at += 1
        if isinstance(unit, bytes):
            out += unit
        elif 0xD800 <= unit <= 0xDBFF:
            low = units[at] if at < len(units) else 0
            if isinstance(low, bytes) or not 0xDC00 <= low <= 0xDFFF:
                return None
            out += chr(0x10000 + (unit - 0xD800) * 0x400 + (low - 0xDC00)).encode()
            at += 1
        elif 0xDC00 <= unit <= 0xDFFF:
            return None
        else:
            out += chr(unit).encode()
    return out


def code_units(raw: bytes) -> list[bytes | int] | None:
    """A string's raw bytes one by one, and a number for each ``\\u`` escape; None if an escape is not JSON's."""
    units: list[bytes | int] = []
    at = 0
    while at < len(raw):
        if raw[at] != ord("\\"):
            units.append(raw[at : at + 1])
            at += 1
        elif raw[at + 1] == ord("u"):
            digits = raw[at + 2 : at + 6]
            if len(digits) < 4 or not all(digit in HEX for digit in digits):
                return None
            units.append(int(digits, 16))
            at += 6
        else:
            known = b'"\\/bfnrt'.find(raw[at + 1 : at + 2])
            if known < 0:
                return None
            units.append(b'"\\/\b\f\n\r\t'[known : known + 1])
            at += 2
    return units


# --- Merging ----------------------------------------------------------------------------------------------------------


class Delta(NamedTuple):
    """A delta that may be merged with others."""

    #: Session, parent, index and type.
    key: tuple[bytes | None, bytes | None, bytes, str]
    #: The line without its text and its uuid, and where in this they were.
    template: tuple[bytes, ...]
    text: bytes
    uuid: bytes | None
    #: Whether the text stands before the uuid.
    text_first: bool

    def line(self) -> bytes:
        """The line."""
        if self.uuid is None:
            return self.text.join(self.template)
        first, second = (self.text, self.uuid) if self.text_first else (self.uuid, self.text)
        return self.template[0] + first + self.template[1] + second + self.template[2]

    def merged(self, other: Delta) -> Delta:
        """With the text of another one behind its own."""
        return self._replace(text=self.text + other.text, uuid=other.uuid)


def delta(line: bytes) -> Delta | None:
    """The parts of a delta that may be merged; None for any other line."""
    first, second, detail = kind(line)
    if (first, second) != ("stream_event", "content_block_delta") or detail not in TEXT_KEYS:
        return None
    if not is_strict_json(line) or not _is_read_by_all(line):
        return None
    objects = structure(line)
    named: dict[tuple[str, ...], dict[tuple[bytes | int, ...], tuple[int, int]]] = {}
    for path, members in objects.items():
        named[path] = {}
        for key, start, end in members:
            units = code_units(key)
            assert units is not None
            means = tuple(_joined(units))
            if means in named[path]:
                return None
            named[path][means] = (start, end)

    def value(path: tuple[str, ...], name: str) -> tuple[int, int] | None:
        return named.get(path, {}).get(tuple(name[at].encode() for at in range(len(name))))

    text = value(("event", "delta"), TEXT_KEYS[detail])
    if text is None or line[text[0]] != ord('"'):
        return None
    index = value(("event",), "index")
    if index is None or not all(byte in DIGITS for byte in line[index[0] : index[1]]):
        return None
    names: list[bytes | None] = []
    for name in ("session_id", "parent_tool_use_id"):
        place = value((), name)
        raw = line[place[0] : place[1]] if place is not None else b"null"
        if raw == b"null":
            names.append(None)
        elif raw[0] == ord('"') and b"\\" not in raw:
            names.append(raw)
        else:
            return None
    uuid = value((), "uuid")
    if uuid is not None and (line[uuid[0]] != ord('"') or b"\\" in line[uuid[0] : uuid[1]]):
        return None

    spans = sorted((start + 1, end - 1) for start, end in [text, uuid or text][: 2 if uuid else 1])
    template: list[bytes] = []
    at = 0
    for start, end in spans:
        template.append(line[at:start])
        at = end
    template.append(line[at:])
    return Delta(
        (names[0], names[1], line[index[0] : index[1]], detail),
        tuple(template),
        line[text[0] + 1 : text[1] - 1],
        line[uuid[0] + 1 : uuid[1] - 1] if uuid is not None else None,
        uuid is None or text < uuid,
    )


def _is_read_by_all(line: bytes) -> bool:
    """Whether strict JSON has no value that decoders may refuse: nested deeply, or a number out of range."""
    depth = 0
    at = 0
    while at < len(line):
        if line[at] == ord('"'):
            at = after_string(line, at)
            continue
        if line[at] in b"-0123456789":
            start = at
            while at < len(line) and line[at] not in ENDS:
                at += 1
            number = line[start:at]
            if len(number) > MOST_DIGITS or b"e" in number or b"E" in number:
                return False
            continue
        if line[at] in b"[{":
            depth += 1
        if line[at] in b"]}":
            depth -= 1
        if depth > MOST_DEPTH:
            return False
        at += 1
    return True


def _joined(units: list[bytes | int]) -> list[bytes | int]:
    """Escapes as what they mean, so that two ways to write a key are one; a half of a pair stays a number."""
    out: list[bytes | int] = []
    for unit in units:
        last = out[-1] if out else b""
        if isinstance(unit, bytes):
            out.append(unit)
        elif isinstance(last, int) and 0xD800 <= last <= 0xDBFF and 0xDC00 <= unit <= 0xDFFF:
            pair = chr(0x10000 + (last - 0xD800) * 0x400 + (unit - 0xDC00)).encode()
            out[-1:] = [pair[at : at + 1] for at in range(4)]
        elif 0xD800 <= unit <= 0xDFFF:
            out.append(unit)
        else:
            character = chr(unit).encode()
            out += [character[at : at + 1] for at in range(len(character))]
    return out


def coalesced(lines: Sequence[bytes], names: Iterable[str] | None = None, max_line: int | None = None) -> list[bytes]:
    """What is left of the lines of one feed, without blank ones and those that ``only=names`` passes over.

    Args:
        lines: without their line feeds, none of them above ``max_line`` bytes.
        names: None keeps all kinds.
        max_line: longest line that merging may make.
    """
    return _merged(lines, None if names is None else list(names), max_line, None)[0]


def _merged(
    lines: Sequence[bytes], names: Sequence[str] | None, max_line: int | None, earning: Earning | None
) -> tuple[list[bytes], int]:
    """As :func:`coalesced`; and how many lines were gone through until the credit was spent, if there is one."""
    out: list[bytes] = []
    groups: dict[object, Delta] = {}
    merged_lines = 0

    def close_all() -> None:
        nonlocal merged_lines
        out.extend(group.line() for group in groups.values())
        if earning is not None:
            earning.count(merged=merged_lines, groups=len(groups))
        groups.clear()
        merged_lines = 0

    taken = 0
    for line in lines:
        if earning is not None and earning.left == 0:
            break
        taken += 1
        if is_blank(line):
            continue
        if names is not None and skipped(line, names):
            close_all()
            continue
        found = delta(line)
        if found is None:
            close_all()
            out.append(line)
            if earning is not None:
                earning.count(others=1)
            continue
        group = groups.get(found.key)
        if group is not None and group.template == found.template:
            merged = group.merged(found)
            if max_line is None or len(merged.line()) <= max_line:
                groups[found.key] = merged
                merged_lines += 1
                continue
        if group is not None or len(groups) == MOST_OPEN:
            close_all()
        groups[found.key] = found
    close_all()
    return out, taken


class Earning:
    """What ``coalesce`` without ``only`` makes of a stream: lines are merged while that pays, and else left alone."""

    #: What a merged line adds to the credit; what the line of a group takes that others were or might be merged into;
    #: and what any other line takes.
    MERGED = 2
    GROUP = 1
    OTHER = 3
    #: Credit for which merging begins, at first and at most.
    NEEDED = 64
    MOST_NEEDED = 8192
    #: Credit that merging begins with, and the most that it has.
    START = 24
    MOST = 96
    #: Lines that must be merged until merging ends, for it to have paid.
    PAYS = 32

    EVENT = b'{"type":"stream_event","event":{"type":'
    DELTA = b'"content_block_delta"'

    def __init__(self, max_line: int | None = None) -> None:
        self.max_line = max_line
        self.merging = False
        self.left = 0
        self.needed = self.NEEDED
        self.merged = 0

    def feed(self, lines: Sequence[bytes], *, begun: bool = False) -> list[bytes]:
        """What is left of the lines that one chunk completes.

        Together they are shorter than a block, and none is above the limit. ``begun``: an earlier chunk has the
        beginning of the first. Blank lines remain where nothing is merged.
        """
        out: list[bytes] = []
        before: bool | None = None
        at = 0
        while at < len(lines):
            if self.merging:
                kept, taken = _merged(lines[at:], None, self.max_line, self)
                out += kept
                at += taken
                if self.left == 0:
                    self.merging = False
                    self.needed = self.NEEDED if self.merged >= self.PAYS else min(2 * self.needed, self.MOST_NEEDED)
                    before = None
                continue
            rest = lines[at:]
            begin = 0
            for number, line in enumerate(rest, 1):
                if at == 0 and number == 1 and begun:
                    begin = 1
                    continue
                looks = self.looks_like_delta(line)
                if before is not None:
                    self.count(merged=before and looks, groups=looks and not before, others=not looks)
                before = looks
                if self.left == 0:
                    begin = number - 1 if looks else number
            if self.left >= self.needed and before is not None:
                self.merging, self.left, self.merged = True, self.START, 0
            else:
                begin = len(rest)
            out += rest[:begin]
            at += begin
        return out

    def count(self, *, merged: int = 0, groups: int = 0, others: int = 0) -> None:
        """So many lines have come out or were merged into them, or would be."""
        self.left += self.MERGED * merged
        if self.merging:
            self.left = min(self.left, self.MOST)
        self.left = max(self.left - self.GROUP * groups - self.OTHER * others, 0)
        self.merged += merged

    def looks_like_delta(self, line: bytes) -> bool:
        """Whether a line is perhaps a delta, by its first bytes."""
        if line.startswith(self.EVENT):
            return line[len(self.EVENT) :].startswith(self.DELTA)
        return self.DELTA in line[:256]


# --- Strict JSON ------------------------------------------------------------------------------------------------------


def is_strict_json(line: bytes) -> bool:
    """Whether a line is one JSON value by RFC 8259, in UTF-8. Halves of surrogate pairs are JSON."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    try:
        return after_white_space(line, _after_json(line)) == len(line)
    except Unclear:
        return False


def _after_json(line: bytes) -> int:
    """The place after the first JSON value; without recursion, since it may be nested to any depth."""
    open_containers: list[int] = []
    at = 0
    while True:
        # A value.
        at = after_white_space(line, at)
        if has(line, at, b"{["):
            opening = line[at]
            at = after_white_space(line, at + 1)
            if not has(line, at, b"}" if opening == ord("{") else b"]"):
                open_containers.append(opening)
                if opening == ord("{"):
                    at = _after_json_key(line, at)
                continue
            at += 1
        elif has(line, at, b'"'):
            at = _after_json_string(line, at)
        else:
            at = _after_json_scalar(line, at)
        # What follows it.
        while True:
            if not open_containers:
                return at
            at = after_white_space(line, at)
            if has(line, at, b","):
                at = after_white_space(line, at + 1)
                if open_containers[-1] == ord("{"):
                    at = _after_json_key(line, at)
                break
            if not has(line, at, b"}" if open_containers[-1] == ord("{") else b"]"):
                raise Unclear
            open_containers.pop()
            at += 1


def _after_json_key(line: bytes, at: int) -> int:
    if not has(line, at, b'"'):
        raise Unclear
    at = after_white_space(line, _after_json_string(line, at))
    if not has(line, at, b":"):
        raise Unclear
    return at + 1


def _after_json_string(line: bytes, at: int) -> int:
    end = after_string(line, at)
    raw = line[at + 1 : end - 1]
    if code_units(raw) is None or any(byte < 0x20 for byte in raw):
        raise Unclear
    return end


def _after_json_scalar(line: bytes, at: int) -> int:
    end = at
    while end < len(line) and line[end] not in ENDS:
        end += 1
    word = line[at:end]
    if word in (b"true", b"false", b"null"):
        return end
    # A number: perhaps a minus; 0, or digits that do not begin with 0; perhaps a point and digits; perhaps an exponent.
    at = 1 if word[:1] == b"-" else 0
    whole = _after_digits(word, at)
    if whole == at or (word[at] == ord("0") and whole > at + 1):
        raise Unclear
    at = whole
    if has(word, at, b"."):
        fraction = _after_digits(word, at + 1)
        if fraction == at + 1:
            raise Unclear
        at = fraction
    if has(word, at, b"eE"):
        at += 1
        if has(word, at, b"+-"):
            at += 1
        exponent = _after_digits(word, at)
        if exponent == at:
            raise Unclear
        at = exponent
    if at != len(word):
        raise Unclear
    return end


def _after_digits(word: bytes, at: int) -> int:
    while has(word, at, DIGITS):
        at += 1
    return at
