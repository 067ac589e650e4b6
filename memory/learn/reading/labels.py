"""The classes of the statement encoder's heads, in the order of their outputs."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from memory.model.claims import ATTRIBUTES, Act, Relation
from memory.model.memories import CATEGORIES, NO_ATTRIBUTE
from memory.ports import FrameKind, OrderReach

TokenKind: TypeAlias = Literal["plain", "value", "name", "secret"]

HEADS = tuple("act attribute relation category sides pair token clause leans frame asks reach".split())
ACTS = ("none", *(act.value for act in Act))
ATTRIBUTE_NAMES = (NO_ATTRIBUTE, *ATTRIBUTES)
RELATION_NAMES = tuple(relation.value for relation in Relation)
CATEGORY_NAMES = CATEGORIES
PAIR_RELATIONS = ("same", "replaces", "unrelated")
TOKEN_KINDS: tuple[TokenKind, ...] = get_args(TokenKind)
FRAMES = ("plain", *(kind.value for kind in FrameKind))
ASKS = ("states", "orders", "asks")  # what a question does: the last only asks
REACHES = tuple(reach for reach in OrderReach if reach is not OrderReach.MESSAGE)  # of an order to forget
CLAUSE_MARKS = ("outside", "begin", "inside")  # of each token: does it belong to the clause that says a fact?
CLAUSE_WEIGHTS = (0.5, 2.0, 1.0)  # of these in training; what reads their shares takes them out again

IMPORTANCE = {
    "constraint": 0.8,
    "correction": 0.8,
    "preference": 0.6,
    "fact": 0.6,
    "skill": 0.6,
    "decision": 0.6,
    "goal": 0.5,
    "habit": 0.5,
    "event": 0.4,
    "context": 0.4,
}
IMPORTANCE_ASKED = 0.9  # of what the author asked to remember
_EPISODIC = frozenset({"event", "trip", "purchase", "appointment"})


def type_of(act: Act, attribute: str, category: str) -> str:
    if act is Act.WISH or category == "skill":
        return "procedural"
    return "episodic" if attribute in _EPISODIC or category == "event" else "semantic"
