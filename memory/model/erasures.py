"""What is known of an erasure, and what a look for the rest of a user found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What was deleted by one erasure. `asked_at`, `deleted_at`: Unix seconds; `deleted`: numbers by kind."""

    id: str
    asked_at: float
    deleted_at: float
    deleted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PlaceReport:
    """A look into one place: its files, or what a server shows. `searched`: what was read, and how.

    `items`: how many files or rows were read. `found_in`: names of those that hold what was looked for. `not_searched`:
    what of this place could not be read, and why.
    """

    place: str
    searched: str
    items: int
    found_in: tuple[str, ...] = ()
    not_searched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ErasureRecord:
    """One erasure. `rewritten_at`: None while files may still hold deleted bytes."""

    request: ErasureRequest
    rewritten_at: float | None = None
