"""The JSON answer of a chat model: its schema, and a parser that returns whole items even from a truncated answer.

Schemas use only what strict servers accept: every property required, no limits on strings. A claim has a short and a
full form, because at a dozen tokens a second every empty field takes time. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from memory.model import ATTRIBUTES, CATEGORIES, NO_ATTRIBUTE, Act, Relation
from memory.ports import PairRelation

CLAIMS = "claims"
PAIRS = "pairs"
CLAIMS_MAX = 30  # per call; beyond it a model repeats itself
CLAIMS_OF_UNIT_MAX = 8  # facts of a sentence
UNITS_OF_CLAIM_MAX = 8
VALUES_MAX = 6
LEVELS = ("high", "low")
CONFIDENCE = {"high": 0.9, "low": 0.5}  # low is below the gate's minimum: such claims are counted, not stored
THOUGHT_END = "</think>"  # some models write their reasoning before the answer


class ProposedClaim(msgspec.Struct):
    """A claim as the model returned it. `clause`: "" for the whole of the units. `when`: the words that give a date."""

    u: list[int] | int
    act: str
    clause: str = ""
    content: str = ""
    about: str = Relation.USER.value
    name: str = ""
    attr: str = NO_ATTRIBUTE
    values: list[str | int | float] | str = []
    no: bool = False
    from_: str = msgspec.field(name="from", default="")
    until: str = ""
    when: str = ""
    category: str = "fact"
    sure: str = LEVELS[0]


class ProposedVerdict(msgspec.Struct):
    """The model's verdict on pair `n`. `what`: the one thing that both statements are about."""

    n: int
    is_: str = msgspec.field(name="is")
    what: str = ""
    sure: str = LEVELS[0]


def _enum(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _list(items: dict[str, Any], *, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TEXT: dict[str, Any] = {"type": "string"}
_FULL: dict[str, Any] = {
    "act": _enum(*Act),
    "clause": _TEXT,
    "content": _TEXT,
    "about": _enum(*Relation),
    "name": _TEXT,
    "attr": _enum(NO_ATTRIBUTE, *ATTRIBUTES),
    "values": _list(_TEXT, most=VALUES_MAX),
    "no": {"type": "boolean"},
    "from": _TEXT,
    "until": _TEXT,
    "when": _TEXT,
    "category": _enum(*CATEGORIES),
    "sure": _enum(*LEVELS),
}
_SHORT = {name: kind for name, kind in _FULL.items() if name not in ("name", "no", "from", "until", "when")}
_RELATED: dict[str, Any] = {"n": {"type": "integer"}, "what": _TEXT, "is": _enum(*PairRelation), "sure": _enum(*LEVELS)}


def claims_schema(units: int) -> dict[str, Any]:
    """The schema for a transcript with that many numbered units; it limits weak models that keep counting."""
    number = _list({"type": "integer", "minimum": 1, "maximum": units}, most=UNITS_OF_CLAIM_MAX)
    forms = [_object({"u": number, **form}) for form in (_SHORT, _FULL)]
    return _object({CLAIMS: _list({"anyOf": forms}, most=min(CLAIMS_MAX, units * CLAIMS_OF_UNIT_MAX))})


def pairs_schema(pairs: int) -> dict[str, Any]:
    return _object({PAIRS: _list(_object(_RELATED), most=pairs)})


@dataclass(frozen=True, slots=True)
class AnswerItems:
    """The complete items of an answer. Not `is_whole`: the answer was truncated."""

    items: Sequence[Any]
    is_whole: bool

    @property
    def repeats_itself(self) -> bool:
        """Whether the model had nothing more to say and repeated items."""
        return any(item in self.items[:index] for index, item in enumerate(self.items))


def answer_items(answer: str, key: str) -> AnswerItems | None:
    """The items of the list `key`, ignoring text around the JSON; None if there is no list or no complete item."""
    opening, found, rest = answer.rpartition(THOUGHT_END)[2].partition(f'"{key}"')
    rest = rest.lstrip()
    if not found or not opening.rstrip().endswith("{") or not rest.startswith(":"):
        return None
    text = rest[1:].lstrip()
    if not text.startswith("["):
        return None
    items: list[Any] = []
    at = _next(text, 1)
    while len(items) < CLAIMS_MAX and not text.startswith("]", at):
        try:
            item, end = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            return AnswerItems(items, is_whole=False) if items else None
        items.append(item)
        at = _next(text, end)
    return AnswerItems(items, is_whole=True)


def _next(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def written(key: str, items: Sequence[Any]) -> str:
    """The most compact JSON: a model imitates what it is shown, and each token takes time."""
    return json.dumps({key: items}, ensure_ascii=False, separators=(",", ":"))
