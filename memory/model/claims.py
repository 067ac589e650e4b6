"""One thing that a message says about its author, read once: everything after it compares these fields, never prose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from memory.errors import BadInput
from memory.model.identity import Scope
from memory.model.memories import CATEGORIES, MEMORY_TYPES, NO_ATTRIBUTE, Evidence


class Act(StrEnum):
    """What the author does by saying it."""

    STATE = "state"
    WISH = "wish"  # how the assistant is to answer from now on
    REMEMBER = "remember"
    FORGET = "forget"
    WITHHOLD = "withhold"  # not to be stored
    CORRECT = "correct"
    CONFIRM = "confirm"
    INSTRUCT = "instruct"  # tries to plant an order; never stored


STORED_ACTS = frozenset({Act.STATE, Act.WISH, Act.REMEMBER, Act.CORRECT})
"""Acts that leave a memory; the others do something to memories, or nothing."""

EXPLICIT_ACTS = frozenset({Act.REMEMBER, Act.CORRECT})
"""Acts by which the author wants a memory to be made."""


class Relation(StrEnum):
    """Who a claim is about, seen from the author."""

    USER = "user"
    PARTNER = "partner"
    CHILD = "child"
    PARENT = "parent"
    SIBLING = "sibling"
    RELATIVE = "relative"
    FRIEND = "friend"
    COLLEAGUE = "colleague"
    PET = "pet"
    OTHER = "other"


_SINGLE_VALUED = frozenset("name age birthday home employer relationship answer_language religion".split())
_ATTRIBUTES = (
    "name age birthday language origin religion home occupation employer education income project tool relationship "
    "family pet health allergy medication diet body food drink music media sport hobby opinion habit skill goal plan "
    "appointment trip purchase event possession vehicle device budget contact number answer_style answer_language"
)
ATTRIBUTES = MappingProxyType({name: name in _SINGLE_VALUED for name in _ATTRIBUTES.split()})
"""The table of attributes: name to whether one subject has one value of it at a time."""

Values: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """`text` is what the author said, in whole sentences; `evidence.quote` stands word for word in their message.

    `values`: the words of the text that would differ if the fact changed, as typed. `name`: of the person or pet that
    it is about, "" for the author or where none is given. `is_affirmed`: False where it denies ("I don't eat fish").
    `said_at`, `holds_from`, `holds_until`: Unix seconds; None where open. `confidence`, `importance` lie in 0..1.
    `made_by`: the reader, with its version.
    """

    act: Act
    text: str
    evidence: Evidence
    scope: Scope
    said_at: float
    relation: Relation = Relation.USER
    name: str = ""
    attribute: str = NO_ATTRIBUTE
    values: Values = ()
    is_affirmed: bool = True
    holds_from: float | None = None
    holds_until: float | None = None
    memory_type: str = "semantic"
    category: str = "fact"
    confidence: float = 0.9
    importance: float = 0.5
    made_by: str = ""

    def __post_init__(self) -> None:
        if self.attribute != NO_ATTRIBUTE and self.attribute not in ATTRIBUTES:
            raise BadInput(f"unknown attribute {self.attribute!r:.40}")
        if self.memory_type not in MEMORY_TYPES or self.category not in CATEGORIES:
            raise BadInput(f"unknown memory type or category: {self.memory_type!r:.40}, {self.category!r:.40}")
        if not (0.0 <= self.confidence <= 1.0 and 0.0 <= self.importance <= 1.0):
            raise BadInput("confidence and importance must lie between 0 and 1")

    @property
    def is_explicit(self) -> bool:
        """Whether the author asked for it to be kept, or put it right."""
        return self.act in EXPLICIT_ACTS


def is_single_valued(attribute: str) -> bool:
    return ATTRIBUTES.get(attribute, False)
