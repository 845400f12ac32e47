"""Recognise words that look random, such as the key ``xK9mP2qL7vRt4wZn``, and words that encode readable text in
base64, base32 or hex, such as ``aHVudGVyMnh5eg==``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: Ids of the API and the CLI, such as ``toolu_01AbCdEf``. They look random, but connect a session's lines.
ID = re.compile(r"(?:msg|toolu|srvtoolu|mcptoolu|req|msgbatch|file|container)_[A-Za-z0-9_-]{8,40}")

#: A base64 word of at least this many characters is masked, whatever it encodes.
LONG_WORD = 400

_RUN = re.compile(r"[A-Za-z0-9]{12,}")
#: The parts of a word: ``getUserName`` has three. A name has few long parts; a random key has many short ones.
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_TIME = re.compile(r"\d{8}T\d{4,9}Z?")
_CLASSES = {
    **dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 1),
    **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 2),
    **dict.fromkeys("0123456789", 3),
}
_HEX, _BASE32 = re.compile(r"(?:[0-9a-f]{2}){8,}|(?:[0-9A-F]{2}){8,}"), re.compile(r"[A-Z2-7]{16,}={0,6}")
_READABLE = re.compile(r"[\x20-\x7e\t\r\n]{6,}")


def looks_random(word: str) -> bool:
    """Return True if lower-case letters, capitals and digits alternate in a word as often as in a random key."""
    return any(map(_run_looks_random, _RUN.findall(word))) or (len(word) >= 20 and _changes_often(word))


def _run_looks_random(run: str) -> bool:
    size, parts = len(run), len(_PARTS.findall(run))
    digits = sum(map(str.isdigit, run))
    if digits == size:
        return False
    if _TIME.fullmatch(run):
        return False
    lowered = run.lower()
    if digits and not lowered.strip("0123456789abcdef"):  # hex; a short one may be the name of a commit
        return size >= 20 and digits >= 3
    if run != lowered and run != run.upper():  # lower-case letters and capitals
        if not digits:
            return size >= 24 and parts >= size / 2.6
        return parts >= size / (3 if size >= 20 else 2.8 if size >= 16 else 2.2 if digits >= 2 else 0.1)
    if run == run.upper() and size >= 16 and size - digits >= 8 and digits >= 2 and parts >= 4:
        return True
    if digits and _BASE32.fullmatch(run):  # base32, as in the seed of one-time passwords
        return True
    return digits >= 3 and size >= 16 and parts >= size / (3.4 if size >= 20 else 3)


def _changes_often(word: str) -> bool:
    classes = [_CLASSES[one] for one in word if one in _CLASSES]
    if len(classes) < 20:
        return False
    counts = [classes.count(one) for one in (1, 2, 3)]
    changes = sum(map(int.__ne__, classes, classes[1:]))
    if min(counts) >= 2 and changes >= 0.35 * len(classes):
        return True
    return counts[2] >= 6 and changes >= 0.3 * len(classes) and len(classes) >= 30


def decoded(word: str) -> str | None:
    """Return the readable text that a word encodes in hex, base32 or base64, or None if there is no such text."""
    bare = word.rstrip("=")
    if _HEX.fullmatch(bare):
        return _text(bytes.fromhex, bare)
    if _BASE32.fullmatch(word):
        text = _text(base64.b32decode, bare + "=" * (-len(bare) % 8))
        if text is not None:
            return text
    if len(bare) < 12 or len(bare) % 4 == 1 or bare == bare.lower() or bare == bare.upper():
        return None
    if len(word) < 16 and not word.endswith("=") and not any(map(str.isdigit, bare)):  # a name such as getElement
        return None
    standard = bare.replace("-", "+").replace("_", "/")
    return _text(base64.b64decode, standard + "=" * (-len(standard) % 4))


def _text(decode: Callable[[str], bytes], word: str) -> str | None:
    try:
        data = decode(word)
    except ValueError:
        return None
    for encoding in ("utf-8", "utf-16-le") if b"\0" in data else ("utf-8",):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if _READABLE.fullmatch(text) or (text.isprintable() and len(text) >= 6 and encoding == "utf-8"):
            return text
    return None
