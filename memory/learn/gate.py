"""What may be stored at all. Closed when in doubt; every refusal has a reason that is counted.

The gate understands nothing and trusts no reader: it checks. The evidence is looked up again in the stored messages; a
message in which the reader saw a planted order, or that hides characters or markup, teaches nothing. Pure.
"""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile

from memory.language import asks_to_erase, content_words, language_of
from memory.learn.reading.units import own_messages, units_of
from memory.model import STORED_ACTS, Act, Claim, Role, Turn, statement_key
from memory.secrets.redaction import PLACEHOLDER, REDACT_ALL, SecretClass, SecretPolicy, redact

HIDDEN_MAX = 8  # characters without a shape, past which a text hides something; emoji and some scripts join with a few
JOINERS = "\u200c\u200d\u00ad\ufeff"  # zero-width joiners of emoji and scripts, soft hyphens, byte-order marks
OVERRIDES = "\u202a\u202b\u202d\u202e\u2066\u2067\u2068"  # turn the direction in which text is shown
TAG_FIRST, TAG_LAST = "\U000e0000", "\U000e007f"  # an invisible alphabet
ECHOED_WORDS_MIN = 2  # of a note that a question says again: "what is your cat called?" only takes up one
WORDS_BESIDE_A_SECRET_MIN = 4  # "my card is [redacted]" says nothing


@dataclass(frozen=True, slots=True)
class Limits:
    """`content` in characters; `confidence` in 0..1; `echo_characters_min`: shorter statements recur by chance.

    `echo_turns_max`: so many answers before a statement may it echo, however many turns are learnt with it.
    `secrets` is the policy by which what is quoted was recorded.
    """

    content_characters_min: int = 5
    content_ideographs_min: int = 3  # three Chinese characters can be a sentence
    content_characters_max: int = 2_000
    confidence_min: float = 0.7
    echo_characters_min: int = 16
    echo_turns_max: int = 8
    secrets: Mapping[SecretClass, SecretPolicy] = field(default_factory=lambda: REDACT_ALL)


class Refusal(StrEnum):
    """Values of the `reason` label."""

    NO_EVIDENCE = "no_evidence"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    UNSURE = "unsure"
    ECHO = "echo"
    SECRET = "secret"  # noqa: S105 (a reason, not a secret)
    PLANTED = "planted"
    ASKS_TO_FORGET = "asks_to_forget"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class Dropped:
    claim: Claim
    reason: Refusal


@dataclass(frozen=True, slots=True)
class Verdict:
    kept: tuple[Claim, ...]
    dropped: tuple[Dropped, ...]


@dataclass(frozen=True, slots=True)
class _Source:
    """The stored message that holds a quote, and whether it is to be trusted."""

    text: str
    is_planted: bool


def judge(
    claims: Sequence[Claim],
    turns: Sequence[Turn],
    *,
    shown: Sequence[str] = (),
    limits: Limits | None = None,
    room: int | None = None,
) -> Verdict:
    """Split the claims whose acts leave a memory into what may be stored and what may not.

    `turns`: those that the claims quote, and earlier ones of the session whose answers they may echo. `shown`: texts
    that we put before the model ourselves (notes), if known. `room`: how many more may be kept of this session;
    what the user asked to be remembered is never too much.
    """
    rules = limits or Limits()
    by_id = {turn.id: turn for turn in turns}
    orders = [c.evidence for c in claims if c.act is Act.INSTRUCT and c.confidence >= rules.confidence_min]
    planted = {source for order in orders if (source := _message(order.quote, by_id.get(order.turn_id)))}
    kept: list[Claim] = []
    dropped: list[Dropped] = []
    for claim in claims:
        if claim.act not in STORED_ACTS:
            continue
        reason = _refusal(claim, by_id, planted, shown, rules)
        if reason is None and room is not None and len(kept) >= room and not claim.is_explicit:
            reason = Refusal.RATE
        if reason is None:
            kept.append(claim)
        else:
            dropped.append(Dropped(claim, reason))
    return Verdict(tuple(kept), tuple(dropped))


def _refusal(
    claim: Claim, turns: Mapping[str, Turn], planted: Collection[str], shown: Sequence[str], limits: Limits
) -> Refusal | None:
    source = _source(claim, turns)
    if source is None:
        return Refusal.NO_EVIDENCE
    if source in planted or _hides_text(source):
        return Refusal.PLANTED
    return (
        _refused_as_request(claim)
        or _refused_by_size(claim, limits)
        or _refused_as_secret(claim, limits)
        or _refused_as_unsure(claim, limits)
        or _refused_as_echo(claim, turns, shown, limits)
    )


def _source(claim: Claim, turns: Mapping[str, Turn]) -> str | None:
    """The stored message that holds the quote: of the user, or an answer whose question the user confirmed."""
    turn, quote = turns.get(claim.evidence.turn_id), claim.evidence.quote
    if turn is None or not quote.strip():
        return None
    if claim.evidence.role == Role.ASSISTANT:
        return turn.answer if quote in turn.answer else None
    return _message(quote, turn) or None


def _message(quote: str, turn: Turn | None) -> str:
    """The user's message in that turn that holds the quote, or ""."""
    return next((content for content in own_messages(turn) if quote in content), "") if turn is not None else ""


def _hides_text(message: str) -> bool:
    """Characters that no reader sees but a model does: tags, direction overrides, runs of zero-width characters."""
    hidden = [c for c in message if unicodedata.category(c) in ("Cf", "Co", "Cn") and c not in JOINERS]
    return any(TAG_FIRST <= c <= TAG_LAST or c in OVERRIDES for c in hidden) or len(hidden) >= HIDDEN_MAX


def _refused_as_request(claim: Claim) -> Refusal | None:
    """A reader that takes "forget that I am ill" for a statement would have the opposite of it stored."""
    is_own = claim.evidence.role != Role.ASSISTANT
    asks = is_own and any(asks_to_erase(unit.text) for unit in units_of(claim.evidence.quote))
    return Refusal.ASKS_TO_FORGET if asks else None


def _refused_by_size(claim: Claim, limits: Limits) -> Refusal | None:
    content = claim.text.strip()
    smallest = limits.content_ideographs_min if language_of(content) == "zh" else limits.content_characters_min
    if len(content) < smallest:
        return Refusal.TOO_SHORT
    return Refusal.TOO_LONG if len(content) > limits.content_characters_max else None


def _refused_as_secret(claim: Claim, limits: Limits) -> Refusal | None:
    """A secret that escaped redaction, one whose policy is to drop, or a statement that says nothing but the secret."""
    if any(redact(text, limits.secrets) != text for text in (claim.text, claim.evidence.quote)):
        return Refusal.SECRET
    placeholders = list(PLACEHOLDER.finditer(claim.text))
    if any(match["how"] == "withheld" for match in placeholders):
        return Refusal.SECRET
    words_left = PLACEHOLDER.sub("", claim.text).split()
    return Refusal.SECRET if placeholders and len(words_left) < WORDS_BESIDE_A_SECRET_MIN else None


def _refused_as_unsure(claim: Claim, limits: Limits) -> Refusal | None:
    return Refusal.UNSURE if claim.confidence < limits.confidence_min else None


def _refused_as_echo(claim: Claim, turns: Mapping[str, Turn], shown: Sequence[str], limits: Limits) -> Refusal | None:
    """The user repeats, word for word, what an earlier answer or our note said: nothing new, and not their words.

    Nor may what the assistant asked, where it goes along with a reply, say again what our note said.
    """
    quote = claim.evidence.quote
    if claim.evidence.role == Role.ASSISTANT:
        return None  # what a bare yes confirms is compared with all that is known
    asked = claim.text.replace(quote, "")
    if asked and any(_says_again(asked, text) for text in shown):
        return Refusal.ECHO
    if claim.is_explicit or len(quote) < limits.echo_characters_min:
        return None
    own = turns[claim.evidence.turn_id]
    before = takewhile(lambda turn: turn.id != own.id, turns.values())
    earlier = [turn.answer for turn in deque(before, maxlen=limits.echo_turns_max) if turn.at < own.at]
    sought = statement_key(quote)
    for text in (*earlier, *shown):
        if quote.casefold() in text.casefold() or any(statement_key(line) == sought for line in text.splitlines()):
            return Refusal.ECHO
    return None


def _says_again(asked: str, text: str) -> bool:
    words = content_words(text)
    return len(words) >= ECHOED_WORDS_MIN and words <= content_words(asked)
