"""Which partition of a collection holds a user's rows: a search of one user reads no other.

The partitions are named and chosen here rather than by Milvus' own partition key. With a key, Milvus 2.3 writes an
upserted row into another partition than the one that it searches for the same user, so that the row is never found.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

PARTITIONS = 16  # part of the schema's version: with another number, rows would be looked for where they are not


def partition_of(user_id: str) -> str:
    return f"users_{zlib.crc32(user_id.encode()) % PARTITIONS}"


def all_partitions() -> Sequence[str]:
    return [f"users_{number}" for number in range(PARTITIONS)]
