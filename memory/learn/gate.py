"""What may be stored at all. Closed when in doubt; every refusal has a reason that is counted.

The gate trusts no extraction: the evidence is looked up again in the stored messages. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from memory.learn.facts import Fact
from memory.learn.planted import reason_planted, taints_message
from memory.learn.secrets.redaction import PLACEHOLDER, REDACT_ALL, SecretClass, SecretPolicy, redact
from memory.learn.statements.salience import is_question
from memory.learn.words.lexicon import language_of
from memory.model import Role, Turn, statement_key


@dataclass(frozen=True, slots=True)
class Limits:
    """`content` in characters; `confidence` in 0..1; `echo_characters_min`: shorter statements recur by chance.

    `secrets` is the policy by which what is quoted was recorded.
    """

    content_characters_min: int = 5
    content_ideographs_min: int = 3  # three Chinese characters can be a sentence
    content_characters_max: int = 2_000
    confidence_min: float = 0.7
    echo_characters_min: int = 16
    secrets: Mapping[SecretClass, SecretPolicy] = field(default_factory=lambda: REDACT_ALL)


class Refusal(StrEnum):
    """Values of the `reason` label."""

    NO_EVIDENCE = "no_evidence"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    QUESTION = "question"
    UNSURE = "unsure"
    ECHO = "echo"
    SECRET = "secret"  # noqa: S105 (a reason, not a secret)
    PLANTED = "planted"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class Dropped:
    fact: Fact
    reason: Refusal


@dataclass(frozen=True, slots=True)
class Judgement:
    kept: tuple[Fact, ...]
    dropped: tuple[Dropped, ...]


def judge(
    facts: Sequence[Fact],
    turns: Sequence[Turn],
    *,
    shown: Sequence[str] = (),
    limits: Limits | None = None,
    room: int | None = None,
) -> Judgement:
    """Split `facts` into what may be stored and what may not.

    `turns`: those that the facts quote, and earlier ones of the session whose answers they may echo. `shown`: texts
    that we put before the model ourselves (notes), if known. `room`: how many more may be kept of this session;
    what the user asked to be remembered is never too much.
    """
    rules = limits or Limits()
    by_id = {turn.id: turn for turn in turns}
    kept: list[Fact] = []
    dropped: list[Dropped] = []
    for fact in facts:
        reason = _refusal(fact, by_id, shown, rules)
        if reason is None and room is not None and len(kept) >= room and not fact.is_explicit:
            reason = Refusal.RATE
        if reason is None:
            kept.append(fact)
        else:
            dropped.append(Dropped(fact, reason))
    return Judgement(tuple(kept), tuple(dropped))


def _refusal(fact: Fact, turns: Mapping[str, Turn], shown: Sequence[str], limits: Limits) -> Refusal | None:
    source = _source(fact, turns)
    if source is None:
        return Refusal.NO_EVIDENCE
    return (
        _refused_by_size(fact, limits)
        or _refused_as_planted(fact, source)
        or _refused_as_secret(fact, limits)
        or _refused_as_unsure(fact, limits)
        or _refused_as_echo(fact, turns, shown, limits)
    )


def _source(fact: Fact, turns: Mapping[str, Turn]) -> str | None:
    """The stored message that holds the quote: of the user, or an answer whose question the user confirmed."""
    turn = turns.get(fact.evidence.turn_id)
    quote = fact.evidence.quote
    if turn is None or not quote.strip():
        return None
    if fact.evidence.role == Role.ASSISTANT:
        return turn.answer if quote in turn.answer else None
    said = (m.content for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic)
    return next((content for content in said if quote in content), None)


def _refused_by_size(fact: Fact, limits: Limits) -> Refusal | None:
    content = fact.content.strip()
    smallest = limits.content_ideographs_min if language_of(content) == "zh" else limits.content_characters_min
    if len(content) < smallest:
        return Refusal.TOO_SHORT
    return Refusal.TOO_LONG if len(content) > limits.content_characters_max else None


def _refused_as_planted(fact: Fact, source: str) -> Refusal | None:
    is_planted = taints_message(source) or reason_planted(fact.content) or reason_planted(fact.evidence.quote)
    return Refusal.PLANTED if is_planted else None


def _refused_as_secret(fact: Fact, limits: Limits) -> Refusal | None:
    """A secret that escaped redaction, one whose policy is to drop, or a statement that says nothing but the secret."""
    if any(redact(text, limits.secrets) != text for text in (fact.content, fact.evidence.quote)):
        return Refusal.SECRET
    placeholders = list(PLACEHOLDER.finditer(fact.content))
    if any(match["how"] == "withheld" for match in placeholders):
        return Refusal.SECRET
    if placeholders and not _CLAUSE_END.search(PLACEHOLDER.sub("", fact.content).strip(" .。,，!！")):
        return Refusal.SECRET
    return None


_CLAUSE_END = re.compile(r"[,;:，；、。.!?]\s*\w|\b(?:and|but|so|because|und|aber|y|pero)\b", re.IGNORECASE)


def _refused_as_unsure(fact: Fact, limits: Limits) -> Refusal | None:
    if fact.confidence < limits.confidence_min:
        return Refusal.UNSURE
    is_asking = fact.evidence.role != Role.ASSISTANT and is_question(
        fact.evidence.quote, language_of(fact.evidence.quote)
    )
    return Refusal.QUESTION if is_asking and not fact.is_explicit else None


def _refused_as_echo(fact: Fact, turns: Mapping[str, Turn], shown: Sequence[str], limits: Limits) -> Refusal | None:
    """The user repeats, word for word, what an earlier answer or our note said: nothing new, and not their words."""
    quote = fact.evidence.quote
    if fact.evidence.role == Role.ASSISTANT or fact.is_explicit or len(quote) < limits.echo_characters_min:
        return None
    own = turns[fact.evidence.turn_id]
    earlier = [turn.answer for turn in turns.values() if turn.id != own.id and turn.at < own.at]
    sought = statement_key(quote)
    for text in (*earlier, *shown):
        if quote.casefold() in text.casefold() or any(statement_key(line) == sought for line in text.splitlines()):
            return Refusal.ECHO
    return None
