"""What is stored from a chat, and what is not: feeds recorded sessions through learning and scores what is left.

Records are JSON Lines, plain or gzipped: `{"id", "lang", "sessions": [{"at", "messages"}], "expect": [matcher],
"forbid": [regex], "tolerate": [regex]?}`, where a matcher is `{"ideal", "all", "any", "type", "category", "evidence",
"evidence_role"?}`. A text matches if every regex of `all` does and, where `any` is given, one of those. The other two
evaluations of learning share the feeding and the matching. Only learning is under test: no store, no worker, no loop.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypeAlias, TypedDict, TypeVar

from memory.evaluation.records import MessageRecord, Progress, ignore_progress, read_records, seconds
from memory.evaluation.score import share
from memory.learn import gate
from memory.learn.consolidation import consolidate
from memory.learn.extraction import Learner
from memory.learn.redaction import redact
from memory.learn.window import Arbiter
from memory.model import Memory, MemoryStatus, Message, Role, Scope, Turn, TurnStatus

Data: TypeAlias = Mapping[str, Any]

USER = "somebody"
PATTERN_FIELDS = frozenset({"all", "any", "forbid", "tolerate", "forbid_store", "stale", "must", "must_not"})


class SessionRecord(TypedDict):
    at: str
    messages: list[MessageRecord]


class MatcherRecord(TypedDict):
    """What a stored text has to say; the labels and the quote are scored where they are given."""

    ideal: str
    all: list[str]
    any: list[str]
    type: NotRequired[str]
    category: NotRequired[str]
    evidence: NotRequired[str]
    evidence_role: NotRequired[str]


class LearningRecord(TypedDict):
    """What the records of all three evaluations of learning begin with."""

    id: str
    lang: str
    sessions: list[SessionRecord]


class _ExtractionRecord(LearningRecord):
    expect: list[MatcherRecord]
    forbid: list[str]
    tolerate: NotRequired[list[str] | None]


_Record = TypeVar("_Record", bound=LearningRecord)


def read_learning(path: Path, shape: type[_Record], *, kind: str) -> list[Data]:
    """Records whose times and patterns can be used. Raises `BadInput`."""
    return read_records(path, shape, _usable, kind=kind)


def _usable(record: LearningRecord) -> Data:
    if not record["sessions"]:
        raise ValueError("expected at least one session - at `$.sessions`")
    for session in record["sessions"]:
        seconds(session["at"])
    _compile(record)
    return record


def _compile(part: object, field: str = "$") -> None:
    """Try every pattern now: a faulty one should not be found after minutes of scoring."""
    if isinstance(part, Mapping):
        for name, value in part.items():
            _compile(value, f"{field}.{name}")
    elif isinstance(part, list) and field.rpartition(".")[2] in PATTERN_FIELDS:
        for pattern in part:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"no regular expression: {error} - at `{field}`") from error
    elif isinstance(part, list):
        for value in part:
            _compile(value, field)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is stored after all sessions, superseded rows included, and the turns that it stems from."""

    memories: tuple[Memory, ...]
    turns: tuple[Turn, ...]

    @property
    def active(self) -> list[Memory]:
        return [memory for memory in self.memories if memory.status is MemoryStatus.ACTIVE]


async def learn_sessions(record: Data, learner: Learner, *, arbiter: Arbiter | None = None) -> Learnt:
    """The sessions of a record, turn by turn, in order, into an empty memory, with the clock at each turn's time."""
    known: dict[str, Memory] = {}
    seen: list[Turn] = []
    for number, session in enumerate(record["sessions"]):
        context: list[Turn] = []
        for turn in turns_of(session, session_id=f"{record['id']}/{number}"):
            facts = await learner.extract([turn], context=context)
            kept = gate.judge(facts, [*context, turn]).kept
            memories = list(known.values())
            changed = await arbiter.changed(kept, memories) if arbiter is not None else {}
            changes = consolidate(kept, memories, now=turn.at, ids=_ids(turn.id), changed=changed)
            known |= {change.memory.id: change.memory for change in changes}
            context.append(turn)
        seen += context
    return Learnt(tuple(known.values()), tuple(seen))


def _ids(turn_id: str) -> Callable[[str], str]:
    return lambda ordinal: f"{turn_id}/{ordinal}"


def turns_of(session: Data, *, session_id: str) -> list[Turn]:
    """User messages up to the next final answer make one turn. Secrets are redacted, as they are before the append."""
    turns: list[Turn] = []
    waiting: list[Message] = []
    began = seconds(session["at"])

    def close(answer: str) -> None:
        turn = Turn(
            id=f"{session_id}/{len(turns)}",
            scope=Scope(USER, session_id=session_id),
            at=began + len(turns),
            messages=tuple(waiting),
            status=TurnStatus.CLOSED,
            answer=answer,
        )
        turns.append(turn)
        waiting.clear()

    for message in session["messages"]:
        content = redact(message["content"] or "")
        if message["role"] == Role.ASSISTANT and not message.get("tool_calls"):
            close(content)
        elif message["role"] in (Role.USER, Role.TOOL):
            waiting.append(Message(message["role"], content, is_tool_traffic=message["role"] == Role.TOOL))
    if waiting:
        close("")
    return turns


def found(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None


def matches(matcher: Data, text: str) -> bool:
    if not all(found(pattern, text) for pattern in matcher["all"]):
        return False
    return not matcher["any"] or any(found(pattern, text) for pattern in matcher["any"])


async def evaluate_extraction(
    path: Path, learner: Learner, *, arbiter: Arbiter | None = None, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """The figures over all records, by language, and per record."""
    records = read_learning(path, _ExtractionRecord, kind="extraction")
    results: list[dict[str, Any]] = []
    for number, record in enumerate(records, 1):
        results.append(score_extraction(record, await learn_sessions(record, learner, arbiter=arbiter)))
        progress(number, len(records))
    languages = sorted({result["lang"] for result in results})
    return {
        **_figures(results),
        "turns": sum(result["turns"] for result in results),
        "by_language": {name: _figures([r for r in results if r["lang"] == name]) for name in languages},
        "per_record": results,
    }


def score_extraction(record: Data, learnt: Learnt) -> dict[str, Any]:
    """The counts of one record, with the texts behind them."""
    texts = [memory.content for memory in learnt.active]
    expected = record["expect"]
    by_matcher = [[m for m in learnt.active if matches(matcher, m.content)] for matcher in expected]
    is_right = [any(matches(matcher, text) for matcher in expected) for text in texts]
    is_tolerated = [any(found(p, text) for p in record.get("tolerate") or ()) for text in texts]
    wrong = [
        t for t, right, tolerated in zip(texts, is_right, is_tolerated, strict=True) if not right and not tolerated
    ]
    pairs = [(matcher, hits) for matcher, hits in zip(expected, by_matcher, strict=True) if hits]
    return {
        "id": record["id"],
        "lang": record["lang"],
        "turns": len(learnt.turns),
        "expected": len(expected),
        "matched": len(pairs),
        "right": sum(is_right),
        "wrong": len(wrong),
        "is_forbidden": any(found(p, text) for p in record["forbid"] for text in texts),
        "is_empty_expected": not expected,
        "evidence": sum(any(_is_evidence(matcher, m, learnt.turns) for m in hits) for matcher, hits in pairs),
        "type": sum(any(m.memory_type == matcher.get("type") for m in hits) for matcher, hits in pairs),
        "category": sum(any(m.category == matcher.get("category") for m in hits) for matcher, hits in pairs),
        "missed_texts": [matcher["ideal"] for matcher, hits in zip(expected, by_matcher, strict=True) if not hits],
        "wrong_texts": wrong,
    }


def _is_evidence(matcher: Data, memory: Memory, turns: Sequence[Turn]) -> bool:
    """Whether a stored quote stands in a message of the right role, and overlaps the expected one by half."""
    role = matcher.get("evidence_role", Role.USER)
    said = [t.answer for t in turns] if role == Role.ASSISTANT else [m.content for t in turns for m in t.messages]
    return any(
        evidence.role == role
        and any(evidence.quote in text for text in said)
        and _overlap(evidence.quote, matcher["evidence"]) >= 0.5
        for evidence in memory.evidence
    )


def _overlap(first: str, second: str) -> float:
    """Characters in common stretches, as a share of the shorter text."""
    blocks = difflib.SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(1, min(len(first), len(second)))


def _figures(results: Sequence[Data]) -> dict[str, float | int | None]:
    def total(name: str) -> int:
        return sum(result[name] for result in results)

    empty = [result for result in results if result["is_empty_expected"]]
    return {
        "records": len(results),
        "recall": share(total("matched"), total("expected")),
        "precision": share(total("right"), total("right") + total("wrong")),
        "forbidden_rate": share(total("is_forbidden"), len(results)),
        "false_store_rate": share(sum(result["wrong"] > 0 for result in empty), len(empty)),
        "evidence_accuracy": share(total("evidence"), total("matched")),
        "type_accuracy": share(total("type"), total("matched")),
        "category_accuracy": share(total("category"), total("matched")),
    }


__all__ = [
    "LearningRecord",
    "Learnt",
    "MatcherRecord",
    "evaluate_extraction",
    "learn_sessions",
    "matches",
    "read_learning",
    "score_extraction",
]
