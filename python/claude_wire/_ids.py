"""Ids that the other side of a stream chose, remembered within bounds of number and of bytes.

Knows strings. What the ids are of, and what is done with them, is the affair of the callers.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeAlias

__all__ = ["MOST_IDS", "Ids", "Key", "key_of"]

#: What stands for an id: a short one for itself, a long one is replaced by a digest. The types differ, so an id never
#: equals the digest of another one.
Key: TypeAlias = "str | bytes"

#: Longest id that is kept as it is, in characters. Those of the CLI have at most 36.
LONGEST_ID = 128
#: Bytes of the digest of a longer one: too many for two ids with the same digest to be found.
DIGEST_BYTES = 32
#: Ids that are remembered of one kind, if nothing else is said. They take 3 MB at most.
MOST_IDS = 4096


def key_of(id: str) -> Key:
    """What an id is remembered by, in at most some 600 bytes however long the id is."""
    if len(id) <= LONGEST_ID:
        return id
    return blake2b(id.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


class Ids:
    """A set of ids that forgets the oldest one when it would hold more than ``most``."""

    __slots__ = ("_keys", "_most")

    def __init__(self, most: int = MOST_IDS) -> None:
        self._keys: dict[Key, None] = {}
        self._most = most

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, id: str) -> bool:
        return key_of(id) in self._keys

    def add(self, id: str) -> None:
        """Remember an id. One that is remembered already keeps its age."""
        key = key_of(id)
        if key not in self._keys and len(self._keys) >= self._most:
            del self._keys[next(iter(self._keys))]
        self._keys[key] = None

    def discard(self, id: str) -> None:
        """Forget an id, if it is remembered."""
        self._keys.pop(key_of(id), None)
