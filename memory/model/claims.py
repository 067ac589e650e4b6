"""One statement of a message about its author; later stages compare these fields and never parse prose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from memory.errors import BadInput
from memory.model.identity import Scope
from memory.model.memories import CATEGORIES, MEMORY_TYPES, NO_ATTRIBUTE, Evidence


class Act(StrEnum):
    """The speech act of a message."""

    STATE = "state"
    WISH = "wish"  # how the assistant should answer from now on
    REMEMBER = "remember"
    FORGET = "forget"
    WITHHOLD = "withhold"  # not to be stored
    CORRECT = "correct"
    CONFIRM = "confirm"
    INSTRUCT = "instruct"  # an instruction injection; never stored


STORED_ACTS = frozenset({Act.STATE, Act.WISH, Act.REMEMBER, Act.CORRECT})
"""Acts that store a memory; the others change memories, or do nothing."""

EXPLICIT_ACTS = frozenset({Act.REMEMBER, Act.CORRECT})
"""Acts by which the author explicitly asks for a memory."""

ORDERS = frozenset({Act.FORGET, Act.WITHHOLD})
"""Acts by which the author asks that something be no memory."""


class Relation(StrEnum):
    """The relation of the claim's subject to the author."""

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
"""The attributes; the value says whether a subject has only one value of it at a time."""

Values: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """`text`: the author's statement in whole sentences; `evidence.quote`: verbatim text of their message.

    `values`: the words of `text` that would differ if the fact changed, as typed. `name`: of the person or pet that it
    is about, "" for the author or if not given. `is_affirmed`: False for a denial ("I don't eat fish"). `said_at`,
    `holds_from`, `holds_until`: Unix seconds; None if open. `confidence`, `importance`: 0..1. `made_by`: the reader
    with its version. `question`: the assistant's, of `text`, to which the author's words reply. `leans`: whether `text`
    says nothing without what was said before. `utc_offset`: of the author's zone then; None if unknown. `reply`: where
    the evidence is a question, the "yes" to it.
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
    question: str = ""
    leans: bool = False
    utc_offset: int | None = None
    reply: Evidence | None = None

    def __post_init__(self) -> None:
        if self.attribute != NO_ATTRIBUTE and self.attribute not in ATTRIBUTES:
            raise BadInput(f"unknown attribute {self.attribute!r:.40}")
        if self.memory_type not in MEMORY_TYPES or self.category not in CATEGORIES:
            raise BadInput(f"unknown memory type or category: {self.memory_type!r:.40}, {self.category!r:.40}")
        if not (0.0 <= self.confidence <= 1.0 and 0.0 <= self.importance <= 1.0):
            raise BadInput("confidence and importance must lie between 0 and 1")

    @property
    def sources(self) -> tuple[Evidence, ...]:
        """What it rests on, all together."""
        return (self.evidence,) if self.reply is None else (self.evidence, self.reply)

    @property
    def is_explicit(self) -> bool:
        """Whether the author asked for it to be remembered, or corrected it."""
        return self.act in EXPLICIT_ACTS


def is_single_valued(attribute: str) -> bool:
    return ATTRIBUTES.get(attribute, False)
