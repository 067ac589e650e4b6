"""Scores updates: changed facts should replace old ones and similar facts survive, after two or three sessions.

Records: `{"id", "lang", "sessions", "current": [matcher], "stale": [regex], "keep": [matcher], "probe": {"query",
"must": [regex], "must_not": [regex]}}`. A record passes if all four parts hold.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypedDict

from memory.evaluation.extraction import LearningRecord, MatcherRecord, found, learning_figures, matches, read_learning
from memory.evaluation.records import Progress, counted, ignore_progress, seconds
from memory.evaluation.sandbox import Data, Learnt, Sandbox
from memory.evaluation.score import share
from memory.model import Memory

Search: TypeAlias = Callable[[Learnt, str, float], Awaitable[Sequence[Memory]]]
"""Memories of a user, a question, and its time → the memories that a chat would get."""

PARTS = ("current", "stale", "keep", "probe")
PROBE_DELAY_SECONDS = 3_600.0  # the probe is a new chat, an hour after the last session


class _Probe(TypedDict):
    query: str
    must: list[str]
    must_not: list[str]


class _UpdateRecord(LearningRecord):
    current: list[MatcherRecord]
    stale: list[str]
    keep: list[MatcherRecord]
    probe: _Probe


read_updates = partial(read_learning, shape=_UpdateRecord, kind="updates")


async def evaluate_updates(
    records: Sequence[Data], sandbox: Sandbox, *, search: Search | None = None, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """The share of records in which each part holds, also by language, and the result of each record.

    `search`: replaces the sandbox's. Raises `LearningFailed`, `Unavailable`.
    """
    results: list[dict[str, Any]] = []
    for record in counted(records, progress):
        learnt = await sandbox.learn(record)
        asked_at = seconds(record["sessions"][-1]["at"]) + PROBE_DELAY_SECONDS
        injected = await (search or sandbox.search)(learnt, record["probe"]["query"], asked_at)
        results.append(score_update(record, learnt, [memory.content for memory in injected]))
    return learning_figures(results, _rates)


def score_update(record: Data, learnt: Learnt, injected: Sequence[str]) -> dict[str, Any]:
    """Whether each part holds for one record, with the texts. `injected`: the memories that the probe got."""
    active = [memory.content for memory in learnt.active]
    probe = record["probe"]
    facts = {
        part: [any(matches(matcher, text) for text in active) for matcher in record[part]]
        for part in ("current", "keep")
    }
    facts["stale"] = [not any(found(pattern, text) for text in active) for pattern in record["stale"]]
    return {
        "id": record["id"],
        "lang": record["lang"],
        "turns": len(learnt.turns),
        **{part: all(hold) for part, hold in facts.items()},
        "facts": facts,
        "probe": all(any(found(p, text) for text in injected) for p in probe["must"])
        and not any(found(p, text) for p in probe["must_not"] for text in injected),
        "active_texts": active,
        "injected_texts": list(injected),
    }


def _rates(results: Sequence[Data]) -> dict[str, float | int | None]:
    """`stale_active`: share of records in which an outdated fact is still active; `…_facts`: shares of single facts."""
    held = {part: sum(bool(result[part]) for result in results) for part in PARTS}
    passed = sum(all(result[part] for part in PARTS) for result in results)
    number = len(results)
    return {
        "records": number,
        "pass": share(passed, number),
        "current": share(held["current"], number),
        "stale_active": share(number - held["stale"], number),
        "keep": share(held["keep"], number),
        "probe": share(held["probe"], number),
        **{f"{part}_facts": share(*_counted(part, results)) for part in ("current", "stale", "keep")},
    }


def _counted(part: str, results: Sequence[Data]) -> tuple[int, int]:
    """For how many single facts it holds (of outdated ones: that they are gone), and how many there are."""
    each = [holds for result in results for holds in result["facts"][part]]
    return sum(each), len(each)
