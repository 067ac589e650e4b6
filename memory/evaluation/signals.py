"""Scores whether memory is searched for the right messages, on records that say which of them want it.

Records: `{"id", "lang", "query", "history": [message], "has_tools", "label", "search"}`. A missed search loses an
answer, a needless one costs milliseconds, so the two are counted apart and a miss weighs double. The label is reported
by, not scored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.errors import BadInput
from memory.model import Conversation, Message, Role, Vector
from memory.ports import Embedder
from memory.recall import signals
from memory.recall.classifier import SignalClassifier
from memory.recall.phrases import training_phrases
from memory.recall.query import build_query
from memory.recall.signals import Decision

MISS_WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class SignalCase:
    """One request, and whether it wants memory."""

    id: str
    language: str
    label: str
    conversation: Conversation
    wants_memory: bool


def read_signals(path: Path) -> list[SignalCase]:
    """Raises `BadInput` naming the line that is no such record."""
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                cases.append(_case(json.loads(line)))
            except (KeyError, ValueError, TypeError) as error:
                raise BadInput(f"{path.name}, line {number}: not a signals record ({error!r})") from error
    return cases


async def evaluate_signals(
    path: Path, embedder: Embedder, *, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> dict[str, Any]:
    """Train as a process does at its start, decide every record, and score. Raises `BadInput` or `Unavailable`."""
    cases = read_signals(path)
    phrases = training_phrases()
    classifier = SignalClassifier.fit(
        phrases, await embedder.embed([phrase.text for phrase in phrases], is_urgent=False)
    )
    vectors = await embedder.embed([build_query(case.conversation).text for case in cases], is_urgent=False)
    decisions = []
    for number, (case, vector) in enumerate(zip(cases, vectors, strict=True), start=1):
        decisions.append(decided(case, vector, classifier))
        progress(number, len(cases))
    return score_signals(cases, decisions)


def decided(case: SignalCase, vector: Vector | None, classifier: SignalClassifier | None) -> Decision:
    """What a request with this conversation would get, without signals from upstream."""
    return signals.decide(case.conversation, vector=vector, classifier=classifier)


def score_signals(cases: Sequence[SignalCase], decisions: Sequence[Decision]) -> dict[str, Any]:
    """Accuracy and both kinds of error: all together, by language and by label; and every record that went wrong."""
    pairs = list(zip(cases, decisions, strict=True))
    return {
        "records": len(pairs),
        **_rates(pairs),
        "by_language": _by(pairs, lambda case: case.language),
        "by_label": _by(pairs, lambda case: case.label),
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


def _by(
    pairs: Sequence[tuple[SignalCase, Decision]], key: Callable[[SignalCase], str]
) -> Mapping[str, Mapping[str, float | int | None]]:
    names = sorted({key(case) for case, _ in pairs})
    chosen = {name: [pair for pair in pairs if key(pair[0]) == name] for name in names}
    return {name: {"records": len(some), **_rates(some)} for name, some in chosen.items()}


def _rates(pairs: Sequence[tuple[SignalCase, Decision]]) -> dict[str, float | None]:
    wanted = [decision.search for case, decision in pairs if case.wants_memory]
    unwanted = [decision.search for case, decision in pairs if not case.wants_memory]
    missed, needless = wanted.count(False), unwanted.count(True)
    return {
        "accuracy": _share(len(pairs) - missed - needless, len(pairs)),
        "false_negative_rate": _share(missed, len(wanted)),
        "false_positive_rate": _share(needless, len(unwanted)),
        "weighted_error": _share(MISS_WEIGHT * missed + needless, MISS_WEIGHT * len(wanted) + len(unwanted)),
    }


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def _case(record: Mapping[str, Any]) -> SignalCase:
    said = (*record["history"], {"role": Role.USER, "content": record["query"]})
    messages = tuple(
        Message(
            role=message["role"],
            content=message["content"] or "",
            is_tool_traffic=message["role"] == Role.TOOL or bool(message.get("tool_calls")),
        )
        for message in said
    )
    return SignalCase(
        id=record["id"],
        language=record["lang"],
        label=record["label"],
        conversation=Conversation(messages=messages, offers_tools=bool(record["has_tools"])),
        wants_memory=bool(record["search"]),
    )
