"""Versions of memories: they differ if anything of a memory does, so that callers change only what they have read."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from memory.errors import BadInput
from memory.model.memories import Memory

_DIGITS = 32  # of hexadecimal: no two states of a memory share them by chance


class VersionChanged(BadInput):
    """The memory is no longer as the caller has read it."""

    def __init__(self) -> None:
        super().__init__(
            "this memory has changed since you read it, or the version is not of this memory: read it again",
            code="precondition_failed",
        )


def version_of(memory: Memory) -> str:
    """Follows from all fields, also those that recall counts (`access_count`, `used_at`)."""
    return hashlib.sha256(repr(memory).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def refuse_changed(memory: Memory, expected: Collection[str] | None) -> None:
    """Raises `VersionChanged` unless it has one of these versions. None: any."""
    if expected is not None and version_of(memory) not in expected:
        raise VersionChanged
