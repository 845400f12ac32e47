"""Detect a damaged usage index by digests. SQLite itself reports no error for a flipped bit in a number.

The digest ``sums`` covers every value in the tables that each query reads. The table of answers is large, so the digest
``answers`` only covers the sum of each column for each file.
"""

from __future__ import annotations

import sqlite3
from hashlib import blake2b

#: The columns of the index with numbers of tokens.
COUNTS = ("input", "output", "written", "written_5m", "written_1h", "read")
_SUMMED = ("copied", "session", "model", "quarter", "step", *COUNTS)
_QUERIES = {
    "sums": ("SELECT * FROM files ORDER BY id", "SELECT * FROM names ORDER BY id", "SELECT * FROM sums"),
    "answers": (f"SELECT file, count(*), {', '.join(f'sum({name})' for name in _SUMMED)} FROM answers GROUP BY file",),
}


def write_digests(db: sqlite3.Connection) -> None:
    """Store the digests of the index's current contents."""
    for name in _QUERIES:
        db.execute("INSERT OR REPLACE INTO checks VALUES (?, ?)", (name, _digest(db, name)))


def check_digest(db: sqlite3.Connection, name: str) -> None:
    """Compare the index's contents with the stored digest ``name``.

    Raises:
        sqlite3.DatabaseError: the index is damaged.
    """
    if db.execute("SELECT digest FROM checks WHERE name = ?", (name,)).fetchone() != (_digest(db, name),):
        raise sqlite3.DatabaseError("the index is damaged: its digest differs")


def _digest(db: sqlite3.Connection, name: str) -> bytes:
    digest = blake2b(digest_size=16)
    for query in _QUERIES[name]:
        for row in db.execute(query):
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.digest()
