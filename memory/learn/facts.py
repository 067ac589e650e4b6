"""What learning hands from step to step: one candidate fact with its evidence, before anything is stored.

A fact is a proposal. Only the gate says whether it may be kept, and only consolidation says what becomes of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.errors import BadInput
from memory.model import CATEGORIES, MEMORY_TYPES, Evidence, Scope, Trust


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement worth keeping, as proposed by extraction.

    `evidence.quote` is an exact substring of a message of turn `evidence.turn_id`. `said_at` is in Unix seconds.
    `confidence` and `importance` lie in 0..1. `subject` is "user" or a word for whoever the statement is about
    ("sister", "Rex"). `is_explicit`: the user asked for it to be remembered.
    """

    content: str
    evidence: Evidence
    scope: Scope
    said_at: float
    memory_type: str = "semantic"
    category: str = "fact"
    confidence: float = 0.9
    importance: float = 0.5
    subject: str = "user"
    is_explicit: bool = False
    valid_from: float | None = None  # Unix seconds of the world's time; None: from when it was said
    expires_at: float | None = None
    made_by: str = "verbatim"  # or model and version of the prompt
    trust: Trust | None = None  # None: explicit or inferred, as `is_explicit` says

    def __post_init__(self) -> None:
        if self.memory_type not in MEMORY_TYPES or self.category not in CATEGORIES:
            raise BadInput(f"unknown memory type or category: {self.memory_type!r:.40}, {self.category!r:.40}")
        if not (0.0 <= self.confidence <= 1.0 and 0.0 <= self.importance <= 1.0):
            raise BadInput("confidence and importance must lie between 0 and 1")
