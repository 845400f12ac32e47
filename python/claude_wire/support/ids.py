"""Remember ids that the other side of a stream has chosen, with limits for their number and their bytes."""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeAlias

#: The key of an id: a short string itself, the digest of a long string, or the digits of a number. Only a short string
#: is a str, and digits are shorter than a digest. So different ids have different keys.
Key: TypeAlias = "str | bytes"

#: An id up to this length is kept itself. The CLI's ids have at most 36 characters.
LONGEST_ID = 128
#: The size of a digest. At this size nobody can find two ids with the same digest.
DIGEST_BYTES = 32
#: The default limit of a set of ids, which then takes at most 3 MB.
MAX_IDS = 4096


def key_of(id: str | float) -> Key:
    """Return the key of an id. A key takes at most some 600 bytes, however long the id is.

    ``1`` and ``1.0`` are the same id, because they are the same number in JSON.
    """
    if isinstance(id, str):
        if len(id) <= LONGEST_ID:
            return id
        return _digest(id)
    digits = repr(int(id)) if isinstance(id, float) and id.is_integer() else repr(id)
    return digits.encode() if len(digits) < DIGEST_BYTES else _digest(digits)


def short_id(id: str) -> str:
    """Return an id that can be shown and kept: itself, or the hexadecimal digits of its digest if it is long."""
    return id if len(id) <= LONGEST_ID else _digest(id).hex()


def _digest(id: str) -> bytes:
    return blake2b(id.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


class Ids:
    """A set of ids with a limit. Adding one more id forgets the oldest."""

    __slots__ = ("_keys", "_most")

    def __init__(self, most: int = MAX_IDS) -> None:
        self._keys: dict[Key, None] = {}
        self._most = most

    def __len__(self) -> int:
        return len(self._keys)

    def strings(self) -> list[str]:
        """Return the ids that are kept themselves, the oldest first: strings of up to :data:`LONGEST_ID` characters."""
        return [key for key in self._keys if isinstance(key, str)]

    def __contains__(self, id: str | float) -> bool:
        return key_of(id) in self._keys

    def has_key(self, key: object) -> bool:
        return key in self._keys

    def add(self, id: str | float) -> None:
        """Remember an id. An id that is remembered already keeps its age."""
        self.add_key(key_of(id))

    def add_key(self, key: Key) -> None:
        if key not in self._keys and len(self._keys) >= self._most:
            del self._keys[next(iter(self._keys))]
        self._keys[key] = None

    def discard(self, id: str | float) -> None:
        self._keys.pop(key_of(id), None)
