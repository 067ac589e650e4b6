"""Decides which claims may be stored: checks only, closed when in doubt; every refusal has a counted reason.

The gate does not interpret text and trusts no reader. It looks up the evidence again in the stored messages; a message
in which the reader saw an instruction injection, or which hides characters or markup, yields no memory.

How many facts one session may store per hour is limited, against scripts, loops and pasted floods. Time is that of the
conversation, so that an imported history of several days does not count as a flood. Counts are local to the process and
bounded: after a restart, or with a second worker, a session may store as much again. Pure.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from math import inf
from typing import TypeAlias

from memory.chat import hidden_text
from memory.language import content_words, language_of
from memory.learn.reading.units import own_messages
from memory.model import ORDERS, STORED_ACTS, Act, Claim, Role, Turn, statement_key
from memory.secrets.plain_text import PLACEHOLDER
from memory.secrets.redaction import REDACT_ALL, SecretPolicy, redact
from memory.secrets.secret_classes import SecretClass

# Claims that leave a memory: nobody says more about themselves in one turn, but a loop or a flood does.
CLAIMS_OF_TURN_MAX = 200
FACTS_OF_SENTENCE_MAX = 12
REQUESTS_OF_TURN_MAX = 100  # to forget or to withhold; each of them scans everything that is stored
ECHOED_WORDS_MIN = 2  # words of a note that a question repeats: "what is your cat called?" only repeats one
WORDS_BESIDE_A_SECRET_MIN = 4  # "my card is [redacted]" has no content
CONTENT_CHARACTERS_MIN, CONTENT_CHARACTERS_MAX = 5, 2_000
CONTENT_IDEOGRAPHS_MIN = 3  # three Chinese, Japanese or Korean characters can be a sentence
CONFIDENCE_MIN = 0.7  # 0..1
ECHO_CHARACTERS_MIN = 16  # shorter statements recur by chance
ECHO_TURNS_MAX = 8  # answers before a statement that are checked for echoes, however many turns are learnt together
PACE_SECONDS = 3_600.0
SESSIONS_MAX = 10_000  # the session that was accessed longest ago is dropped first

Secrets: TypeAlias = Mapping[SecretClass, SecretPolicy]
_Windows = list[tuple[str, float, int]]  # window id, time said, facts stored


class Refusal(StrEnum):
    """Values of the metric label `reason`."""

    NO_EVIDENCE = "no_evidence"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    UNSURE = "unsure"
    ECHO = "echo"
    SECRET = "secret"  # noqa: S105 (a reason, not a secret)
    PLANTED = "planted"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class Dropped:
    claim: Claim
    reason: Refusal


@dataclass(frozen=True, slots=True)
class GateResult:
    """`orders`: the claims that ask to forget or to withhold, and may."""

    kept: tuple[Claim, ...]
    dropped: tuple[Dropped, ...]
    orders: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class _Before:
    """Text that a user may echo: the answer of a turn, or, without a turn, our own note. `lines`: statement keys."""

    turn_id: str
    at: float
    folded: str
    lines: frozenset[str]
    words: frozenset[str] = frozenset()  # of a note

    def is_said_again_by(self, asked: str) -> bool:
        return len(self.words) >= ECHOED_WORDS_MIN and self.words <= content_words(asked)


def without_repetitions(claims: Sequence[Claim]) -> list[Claim]:
    """The claims without repetitions, limited per turn; claims of planted instructions are all kept."""
    unique = {(claim.evidence.turn_id, claim.evidence.quote, claim.act, claim.text): claim for claim in claims[::-1]}
    seen: Counter[tuple[str, int]] = Counter()
    kept: list[Claim] = []
    for claim in reversed(unique.values()):
        most = 0
        if claim.act in STORED_ACTS:
            most = CLAIMS_OF_TURN_MAX
        elif claim.act in ORDERS:
            most = REQUESTS_OF_TURN_MAX
        seen[claim.evidence.turn_id, most] += 1
        if not most or seen[claim.evidence.turn_id, most] <= most:
            kept.append(claim)
    return kept


def check_claims(
    claims: Sequence[Claim],
    turns: Sequence[Turn],
    *,
    shown: Sequence[str] = (),
    secrets: Secrets = REDACT_ALL,
    facts_left: int | None = None,
) -> GateResult:
    """Split the claims whose acts leave or delete a memory into those that may and those refused.

    `turns`: those that the claims quote, and earlier ones of the session whose answers may be echoed. `shown`: texts
    that we added to the prompt (notes), if known. `secrets`: the policy with which the turns were recorded.
    `facts_left`: how many more facts the session may store; explicit requests to remember are not limited.
    """
    by_id = {turn.id: turn for turn in turns}
    before = _before(turns, shown)
    planted = planted_messages(claims, turns)
    sources = {_source(claim, by_id) for claim in claims if claim.act in STORED_ACTS | ORDERS}
    planted |= {source for source in sources if source and hidden_text.hides_text(source)}
    asked = [claim for claim in claims if claim.act in ORDERS]
    own = [claim for claim in asked if _source(claim, by_id) not in planted]
    orders = [claim for claim in own if claim.confidence >= CONFIDENCE_MIN]
    dropped = [Dropped(one, Refusal.UNSURE if one in own else Refusal.PLANTED) for one in asked if one not in orders]
    kept: list[Claim] = []
    facts_of: Counter[tuple[str, str]] = Counter()  # by turn and sentence
    for claim in (one for one in claims if one.act in STORED_ACTS):
        sentence = claim.evidence.turn_id, claim.evidence.quote
        is_full = facts_left is not None and len(kept) >= facts_left and not claim.is_explicit
        is_long = facts_of[sentence] >= FACTS_OF_SENTENCE_MAX
        refusal = Refusal.RATE if is_full else Refusal.TOO_LONG if is_long else None
        reason = refusal or _refusal(claim, by_id, planted, before, secrets)
        if reason is not None:
            dropped.append(Dropped(claim, reason))
        else:
            kept.append(_readable(claim))
            facts_of[sentence] += 1
    return GateResult(tuple(kept), tuple(dropped), tuple(orders))


def planted_messages(claims: Sequence[Claim], turns: Sequence[Turn]) -> set[str]:
    """The messages in which the reader sees instructions to the model."""
    by_id = {turn.id: turn for turn in turns}
    orders = [claim.evidence for claim in claims if claim.act is Act.INSTRUCT and claim.confidence >= CONFIDENCE_MIN]
    return {source for order in orders if (source := _message(order.quote, by_id.get(order.turn_id)))}


def _refusal(
    claim: Claim, turns: Mapping[str, Turn], planted: Collection[str], before: Sequence[_Before], secrets: Secrets
) -> Refusal | None:
    source = _source(claim, turns)
    if source is None:
        return Refusal.NO_EVIDENCE
    if source in planted:
        return Refusal.PLANTED
    return (
        _refused_by_size(claim)
        or _refused_as_secret(claim, secrets)
        or (Refusal.UNSURE if claim.confidence < CONFIDENCE_MIN else None)
        or _refused_as_echo(claim, turns, before)
    )


def _before(turns: Sequence[Turn], shown: Sequence[str]) -> list[_Before]:
    return [
        *(_Before("", -inf, text.casefold(), _lines(text), frozenset(content_words(text))) for text in shown),
        *(_Before(turn.id, turn.at, turn.answer.casefold(), _lines(turn.answer)) for turn in turns),
    ]


def _lines(text: str) -> frozenset[str]:
    return frozenset(map(statement_key, text.splitlines()))


def _readable(claim: Claim) -> Claim:
    """The claim as it is stored, without direction marks around names. Its quote stays as it was typed."""
    bare = hidden_text.shown
    if bare(claim.text) == claim.text:
        return claim
    return replace(claim, text=bare(claim.text), name=bare(claim.name), values=tuple(map(bare, claim.values)))


def _source(claim: Claim, turns: Mapping[str, Turn]) -> str | None:
    """The stored message that contains the quote: the user's, or an answer whose question the user confirmed."""
    turn, quote = turns.get(claim.evidence.turn_id), claim.evidence.quote
    if turn is None or not quote.strip():
        return None
    if claim.evidence.role == Role.ASSISTANT:
        return turn.answer if quote in turn.answer else None
    return _message(quote, turn) or None


def _message(quote: str, turn: Turn | None) -> str:
    """The user's message in that turn that contains the quote, or ""."""
    return next((content for content in own_messages(turn) if quote in content), "") if turn is not None else ""


def _refused_by_size(claim: Claim) -> Refusal | None:
    content = claim.text.strip()
    smallest = CONTENT_IDEOGRAPHS_MIN if language_of(content) in ("zh", "ja", "ko") else CONTENT_CHARACTERS_MIN
    if len(content) < smallest:
        return Refusal.TOO_SHORT
    return Refusal.TOO_LONG if len(content) > CONTENT_CHARACTERS_MAX else None


def _refused_as_secret(claim: Claim, secrets: Secrets) -> Refusal | None:
    """A secret that redaction missed, one whose policy is to drop, or a statement that contains nothing else."""
    if any(redact(text, secrets) != text for text in (claim.text, claim.evidence.quote)):
        return Refusal.SECRET
    placeholders = list(PLACEHOLDER.finditer(claim.text))
    if any(match[1] == "withheld" for match in placeholders):
        return Refusal.SECRET
    words_left = PLACEHOLDER.sub("", claim.text).split()
    return Refusal.SECRET if placeholders and len(words_left) < WORDS_BESIDE_A_SECRET_MIN else None


def _refused_as_echo(claim: Claim, turns: Mapping[str, Turn], before: Sequence[_Before]) -> Refusal | None:
    """The user repeats an earlier answer or our own note word for word, which is not a new statement of theirs.

    The same holds for an assistant's question, stored with a reply, that repeats our note.
    """
    quote = claim.evidence.words
    if claim.evidence.role == Role.ASSISTANT:
        return None  # what a bare "yes" confirms is compared with all known memories
    if claim.question and any(one.is_said_again_by(claim.question) for one in before):
        return Refusal.ECHO
    if claim.is_explicit or len(quote) < ECHO_CHARACTERS_MIN:
        return None
    own = turns[claim.evidence.turn_id]
    notes = [one for one in before if not one.turn_id]
    said = takewhile(lambda one: one.turn_id != own.id, (one for one in before if one.turn_id))
    earlier = [one for one in deque(said, maxlen=ECHO_TURNS_MAX) if one.at < own.at]
    folded, sought = quote.casefold(), statement_key(quote)
    is_echo = any(folded in one.folded or sought in one.lines for one in (*notes, *earlier))
    return Refusal.ECHO if is_echo else None


class SessionRateLimit:
    """At most `facts_max` facts per session and hour of conversation time."""

    def __init__(self, facts_max: int) -> None:
        self._facts_max = facts_max
        self._sessions: OrderedDict[tuple[str, str], _Windows] = OrderedDict()

    def facts_left(self, user_id: str, session_id: str, window_id: str, *, at: float) -> int:
        """How many facts the window may still store; an earlier attempt at the same window does not count."""
        windows = self._windows(user_id, session_id)
        near = (kept for known, said, kept in windows if known != window_id and abs(said - at) < PACE_SECONDS)
        return max(0, self._facts_max - sum(near))

    def record_window(self, user_id: str, session_id: str, window_id: str, *, at: float, kept: int) -> None:
        windows = self._windows(user_id, session_id)
        windows[:] = [one for one in windows if one[0] != window_id and at - one[1] < PACE_SECONDS]
        if kept:
            windows.append((window_id, at, kept))

    def _windows(self, user_id: str, session_id: str) -> _Windows:
        windows = self._sessions.setdefault((user_id, session_id), [])
        self._sessions.move_to_end((user_id, session_id))
        if len(self._sessions) > SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return windows
