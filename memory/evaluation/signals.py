"""Scores the decision whether to search, on records that say which messages need memory.

Records: `{"id", "lang", "query", "history": [message], "has_tools", "label", "search"}`. A missed search loses an
answer, an unnecessary one costs milliseconds, so both are counted separately and a miss has double weight. Labels group
the report and are not scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from memory.evaluation.records import MessageRecord, Progress, counted, ignore_progress, read_records
from memory.evaluation.score import by_group, share
from memory.model import Conversation, Message, Role
from memory.ports import Embedder
from memory.recall.query import build_query
from memory.recall.signals.classifier import SignalClassifier
from memory.recall.signals.search_decision import Decision, decide
from memory.recall.signals.training import ClassifierTraining

MISS_WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class SignalCase:
    id: str
    language: str
    label: str
    conversation: Conversation
    wants_memory: bool


class _SignalRecord(TypedDict):
    id: str
    lang: str
    query: str
    history: list[MessageRecord]
    has_tools: bool
    label: str
    search: bool


def read_signals(path: Path) -> list[SignalCase]:
    """Raises `BadInput` naming the first invalid line."""
    return read_records(path, _SignalRecord, _case, kind="signals")


async def evaluate_signals(
    path: Path,
    embedder: Embedder,
    *,
    training: ClassifierTraining[SignalClassifier],
    progress: Progress = ignore_progress,
) -> dict[str, Any]:
    """Load or train a classifier as at the start of a process, decide every record, and score. Raises `BadInput` or
    `Unavailable`."""
    cases = read_signals(path)
    await training.run()
    classifier = training.current()
    decisions = []
    for case in counted(cases, progress):
        [vector] = await embedder.embed([build_query(case.conversation).text], is_urgent=False, as_query=True)
        decisions.append(decide(case.conversation, vector=vector, classifier=classifier))
    return score_signals(cases, decisions)


def score_signals(cases: Sequence[SignalCase], decisions: Sequence[Decision]) -> dict[str, Any]:
    """Accuracy and both error rates: in total, by language and by label; and every wrong record."""
    pairs = list(zip(cases, decisions, strict=True))
    return {
        **_rates(pairs),
        "by_language": by_group(pairs, lambda pair: pair[0].language, _rates),
        "by_label": by_group(pairs, lambda pair: pair[0].label, _rates),
        "wrong": [
            {
                "id": case.id,
                "lang": case.language,
                "label": case.label,
                "search": decision.search,
                "reason": decision.reason,
                "scores": dict(decision.scores),
            }
            for case, decision in pairs
            if decision.search != case.wants_memory
        ],
    }


def _rates(pairs: Sequence[tuple[SignalCase, Decision]]) -> dict[str, float | int | None]:
    wanted = [decision.search for case, decision in pairs if case.wants_memory]
    unwanted = [decision.search for case, decision in pairs if not case.wants_memory]
    missed, needless = wanted.count(False), unwanted.count(True)
    return {
        "records": len(pairs),
        "accuracy": share(len(pairs) - missed - needless, len(pairs)),
        "false_negative_rate": share(missed, len(wanted)),
        "false_positive_rate": share(needless, len(unwanted)),
        "weighted_error": share(MISS_WEIGHT * missed + needless, MISS_WEIGHT * len(wanted) + len(unwanted)),
    }


def _case(record: _SignalRecord) -> SignalCase:
    messages = tuple(
        Message(
            role=message["role"],
            content=message["content"] or "",
            is_tool_traffic=message["role"] == Role.TOOL or bool(message.get("tool_calls")),
        )
        for message in record["history"]
    )
    question = Message(role=Role.USER, content=record["query"])
    return SignalCase(
        id=record["id"],
        language=record["lang"],
        label=record["label"],
        conversation=Conversation(messages=(*messages, question), offers_tools=record["has_tools"]),
        wants_memory=record["search"],
    )
