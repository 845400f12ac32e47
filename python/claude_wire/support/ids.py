"""Remember ids that the other side of a stream chose, and limit how many there are and how long they may be."""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeAlias

#: An id's key: a short string itself, a long string's digest as bytes, or a number's digits as bytes. Digits are
#: shorter than a digest, so different ids have different keys.
Key: TypeAlias = "str | bytes"

#: Maximum number of characters in an id that is its own key. The CLI's ids have at most 36 characters.
LONGEST_ID = 128
#: Digest size in bytes. It is so large that nobody can find two ids with the same digest.
DIGEST_BYTES = 32
#: Default maximum number of ids in a set. A set of this size takes at most 3 MB.
MAX_IDS = 4096


def key_of(id: str | float) -> Key:
    """Return an id's key. A key takes at most about 600 bytes, even if the id is long.

    ``1`` and ``1.0`` have the same key, because they are the same number in JSON.
    """
    if isinstance(id, str):
        if len(id) <= LONGEST_ID:
            return id
        return _digest(id)
    digits = repr(int(id)) if isinstance(id, float) and id.is_integer() else repr(id)
    return digits.encode() if len(digits) < DIGEST_BYTES else _digest(digits)


def short_id(id: str) -> str:
    """Return the id, or its digest in hexadecimal digits if the id is longer than :data:`LONGEST_ID`."""
    return id if len(id) <= LONGEST_ID else _digest(id).hex()


def _digest(id: str) -> bytes:
    return blake2b(id.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


class Ids:
    """A set of ids with a maximum size. Adding an id to a full set removes the oldest."""

    __slots__ = ("_keys", "_most")

    def __init__(self, most: int = MAX_IDS) -> None:
        self._keys: dict[Key, None] = {}
        self._most = most

    def __len__(self) -> int:
        return len(self._keys)

    def strings(self) -> list[str]:
        """Return the ids that are strings of at most :data:`LONGEST_ID` characters, oldest first."""
        return [key for key in self._keys if isinstance(key, str)]

    def __contains__(self, id: str | float) -> bool:
        return key_of(id) in self._keys

    def has_key(self, key: object) -> bool:
        return key in self._keys

    def add(self, id: str | float) -> None:
        """Add an id. An id that is already in the set keeps its age."""
        self.add_key(key_of(id))

    def add_key(self, key: Key) -> None:
        if key not in self._keys and len(self._keys) >= self._most:
            del self._keys[next(iter(self._keys))]
        self._keys[key] = None

    def discard(self, id: str | float) -> None:
        self._keys.pop(key_of(id), None)
