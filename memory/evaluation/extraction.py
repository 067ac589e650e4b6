"""Scores what is stored after recorded sessions are learnt, and what should not be.

Records are JSON Lines, plain or gzipped: `{"id", "lang", "sessions": [{"at", "messages"}], "expect": [matcher],
"forbid": [regex], "tolerate": [regex]?}`, where a matcher is `{"ideal", "all", "any", "type", "category", "evidence",
"evidence_role"?}`. A text matches if every regex of `all` matches and, if `any` is given, at least one of those. The
other two evaluations of learning use the same matchers; all three learn in the sandbox (`sandbox.py`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NotRequired, TypedDict, TypeVar

from memory.evaluation.records import MessageRecord, Progress, counted, ignore_progress, read_records, seconds
from memory.evaluation.sandbox import Data, Learnt, Sandbox
from memory.evaluation.score import by_group, share
from memory.model import Memory, Role, Turn

PATTERN_FIELDS = frozenset({"all", "any", "forbid", "tolerate", "forbid_store", "stale", "must", "must_not"})


class SessionRecord(TypedDict):
    at: str
    messages: list[MessageRecord]


class MatcherRecord(TypedDict):
    """What a stored text has to contain; labels and quote are scored if given."""

    ideal: str
    all: list[str]
    any: list[str]
    type: NotRequired[str]
    category: NotRequired[str]
    evidence: NotRequired[str]
    evidence_role: NotRequired[str]


class LearningRecord(TypedDict):
    """The common fields of the records of all three evaluations of learning."""

    id: str
    lang: str
    sessions: list[SessionRecord]


class _ExtractionRecord(LearningRecord):
    expect: list[MatcherRecord]
    forbid: list[str]
    tolerate: NotRequired[list[str] | None]


_Record = TypeVar("_Record", bound=LearningRecord)


def read_learning(path: Path, shape: type[_Record], *, kind: str) -> list[Data]:
    """Records with valid times and patterns. Raises `BadInput` naming the first invalid line."""
    return read_records(path, shape, _usable, kind=kind)


read_extraction = partial(read_learning, shape=_ExtractionRecord, kind="extraction")


def _usable(record: LearningRecord) -> Data:
    if not record["sessions"]:
        raise ValueError("expected at least one session - at `$.sessions`")
    for session in record["sessions"]:
        seconds(session["at"])
    _compile(record)
    return record


def _compile(part: object, field: str = "$") -> None:
    """Compile every pattern now, so that an error is not found after minutes of scoring."""
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


def found(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None


def matches(matcher: Data, text: str) -> bool:
    if not all(found(pattern, text) for pattern in matcher["all"]):
        return False
    return not matcher["any"] or any(found(pattern, text) for pattern in matcher["any"])


async def evaluate_extraction(
    records: Sequence[Data], sandbox: Sandbox, *, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """The figures over all records, by language, and per record. Raises `LearningFailed`, `Unavailable`."""
    results = [score_extraction(record, await sandbox.learn(record)) for record in counted(records, progress)]
    return learning_figures(results, _figures)


def learning_figures(results: Sequence[Data], figures: Callable[[Sequence[Data]], Data]) -> dict[str, Any]:
    """The figures over all records and by language, and the records."""
    return {
        **figures(results),
        "turns": sum(result["turns"] for result in results),
        "by_language": by_group(results, itemgetter("lang"), figures),
        "per_record": results,
    }


def score_extraction(record: Data, learnt: Learnt) -> dict[str, Any]:
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
        "several": sum(sum(matches(matcher, text) for matcher in expected) > 1 for text in texts),
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
    """Whether a stored quote occurs in a message of the right role, and overlaps the expected one by half."""
    role = matcher.get("evidence_role", Role.USER)
    said = [t.answer for t in turns] if role == Role.ASSISTANT else [m.content for t in turns for m in t.messages]
    return any(
        evidence.role == role
        and any(evidence.quote in text for text in said)
        and _overlap(evidence.words, matcher["evidence"]) >= 0.5
        for evidence in memory.evidence
    )


def _overlap(first: str, second: str) -> float:
    """The length of common substrings as a share of the shorter text."""
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
        "several_facts_rate": share(total("several"), total("right")),
        "forbidden_rate": share(total("is_forbidden"), len(results)),
        "false_store_rate": share(sum(result["wrong"] > 0 for result in empty), len(empty)),
        "evidence_accuracy": share(total("evidence"), total("matched")),
        "type_accuracy": share(total("type"), total("matched")),
        "category_accuracy": share(total("category"), total("matched")),
    }
