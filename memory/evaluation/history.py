"""Evaluates questions after a long history of chats: which evidence is learnt, found, and in the note of a chat.

The format is LongMemEval's, one JSON list, plain or gzipped, with `{"question_id", "question_type", "question",
"answer", "question_date", "haystack_dates", "haystack_sessions": [[{"role", "content", "has_answer"?}]]}` per question,
and dates such as 2023/05/20 (Sat) 02:21. Evidence are the user's messages marked with `has_answer`. Left out are
questions without an answer (`_abs`), and those about what the assistant said (`single-session-assistant`). No model
judges answers: a short one counts as given if all its words are in the note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from memory.errors import BadInput
from memory.evaluation.records import Progress, counted, file_bytes, ignore_progress
from memory.evaluation.sandbox import Data, Learnt, Sandbox, exchanges_of, scope_of, turn_id
from memory.evaluation.score import by_group, mean, share
from memory.model import Memory, MemoryStatus, RequestOptions
from memory.ports import Tokens
from memory.recall.notes.injection import note_line, sentence_line
from memory.typed import from_json

FOUND_WITHIN = RequestOptions(token_budget=800, retrieval_limit=200)  # a search that returns as much as a note may hold
ANSWER_WORDS_MAX = 6  # longer answers are worded freely, so that matching words says little
ASKED_AFTER_SECONDS = 3_600.0  # minimum time after the last session: some questions are dated before it
ABSTENTION = "_abs"  # ending of the ids of questions without an answer
NOT_OF_THE_USER = frozenset({"single-session-assistant"})
_RECORD = "history"  # all records share one id: users tell them apart
_LINE_START = "- "  # of a memory in a note
_WEEKDAY = re.compile(r" \(\w+\)")
_WORD = re.compile(r"[a-z0-9$]+")
_COMMON_WORDS = frozenset("the a an of in at to and my i with on for is was".split())


@dataclass(frozen=True, slots=True)
class EvidenceTurn:
    """A turn with evidence: the index of its session by date, and its own index in it."""

    session: int
    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class History:
    """A question, and the sessions before it, ordered by date."""

    id: str
    question_type: str
    question: str
    answer: str
    asked_at: float
    sessions: tuple[Data, ...]
    evidence: tuple[EvidenceTurn, ...]


class _TurnRecord(TypedDict):
    role: Literal["user", "assistant"]
    content: str
    has_answer: NotRequired[bool | None]


class _QuestionRecord(TypedDict):
    question_id: str
    question_type: str
    question: str
    answer: str | int | float
    question_date: str
    haystack_dates: list[str]
    haystack_sessions: list[list[_TurnRecord]]


def read_history(path: Path, *, limit: int | None = None, types: Collection[str] = ()) -> list[History]:
    """Questions of `types` (empty: all); with `limit`, that many, spread evenly over the file.

    Raises `BadInput` naming the line of the error, or the line on which the invalid question begins.
    """
    histories = []
    for line, element in _elements(path):
        try:
            record = from_json(element, _QuestionRecord)
            is_answered = not record["question_id"].endswith(ABSTENTION)
            if is_answered and record["question_type"] not in NOT_OF_THE_USER:
                histories.append(_history(record))
        except ValueError as error:  # including msgspec's errors
            raise BadInput(f"{path.name}, line {line}: not a question of LongMemEval: {error}") from error
    known = {history.question_type for history in histories}
    if unknown := sorted(set(types) - known):
        raise BadInput(f"{path.name} has no question of type {unknown[0]!r}; it has {', '.join(sorted(known))}")
    chosen = [history for history in histories if not types or history.question_type in types]
    if not chosen:
        raise BadInput(f"{path.name} holds no question whose answer the user gave")
    count = min(limit or len(chosen), len(chosen))
    return [chosen[place * len(chosen) // count] for place in range(count)]


def _elements(path: Path) -> Iterator[tuple[int, bytes]]:
    """Each element of the list in the file, with the line on which it begins."""
    content = file_bytes(path)
    try:
        elements = from_json(content, list[msgspec.Raw])
    except ValueError as error:
        raise BadInput(f"{path.name}{_place_of_fault(content)}: not LongMemEval's JSON: {error}") from error
    line, place = 1, 0
    for element in map(bytes, elements):
        begin = content.index(element, place)
        line += content.count(b"\n", place, begin)
        yield line, element
        place = begin + len(element)
        line += element.count(b"\n")


def _place_of_fault(content: bytes) -> str:
    """The line of a JSON error as part of a message; "" for valid JSON."""
    try:
        json.loads(content)
    except json.JSONDecodeError as error:
        return f", line {error.lineno}"
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return f", line {line}"
    return ""


def _history(record: _QuestionRecord) -> History:
    """Raises ValueError."""
    dates, contents = record["haystack_dates"], record["haystack_sessions"]
    if not contents or len(contents) != len(dates):
        raise ValueError(f"expected sessions and a date for each, got {len(contents)} and {len(dates)} dates")
    moments = (_moment(date, f"haystack_dates[{place}]") for place, date in enumerate(dates))
    dated = sorted(zip(moments, contents, strict=True), key=lambda session: session[0])
    sessions = tuple(
        {"at": at.isoformat(), "messages": [{"role": turn["role"], "content": turn["content"]} for turn in turns]}
        for at, turns in dated
    )
    evidence = (_evidence(number, sessions[number], turns) for number, (_, turns) in enumerate(dated))
    asked_at = _moment(record["question_date"], "question_date").timestamp()
    return History(
        id=record["question_id"],
        question_type=record["question_type"],
        question=record["question"],
        answer=str(record["answer"]),
        asked_at=max(asked_at, dated[-1][0].timestamp() + ASKED_AFTER_SECONDS),
        sessions=sessions,
        evidence=tuple(chain.from_iterable(evidence)),
    )


def _moment(date: str, field: str) -> datetime:
    """A date in LongMemEval's format, taken as UTC. Raises ValueError."""
    try:
        return datetime.strptime(f"{_WEEKDAY.sub('', date)} +0000", "%Y/%m/%d %H:%M %z")
    except ValueError:
        raise ValueError(f"expected a date like 2023/05/20 (Sat) 02:21, got {date!r:.40} - at `$.{field}`") from None


def _evidence(number: int, session: Data, turns: Sequence[_TurnRecord]) -> Iterator[EvidenceTurn]:
    """The turns of a session with marked user messages; a turn may have several."""
    marks = (bool(turn.get("has_answer")) for turn in turns if turn["role"] == "user" and turn["content"].strip())
    for place, (said, _) in enumerate(exchanges_of(session)):
        if any(list(islice(marks, len(said)))):
            yield EvidenceTurn(number, place, "\n".join(message.content for message in said))


async def evaluate_history(
    histories: Sequence[History], sandbox: Sandbox, *, tokens: Tokens, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """The figures over all questions and by type, the result of each question, and all supersessions.

    `tokens`: of a note. Raises `LearningFailed`, `Unavailable`.
    """
    results: list[dict[str, Any]] = []
    superseded: list[dict[str, str | None]] = []
    for history in counted(histories, progress):
        learnt = await sandbox.learn({"id": _RECORD, "sessions": history.sessions})
        found = await sandbox.search(learnt, history.question, history.asked_at, FOUND_WITHIN)
        note = await sandbox.note(learnt, history.question, history.asked_at)
        results.append(score_history(history, learnt, found=found, note=note, tokens=tokens))
        superseded += [{"id": history.id, **pair} for pair in superseded_pairs(learnt)]
    return {
        **_figures(results),
        "by_type": by_group(results, itemgetter("type"), _figures),
        "superseded": superseded,
        "per_record": results,
    }


def score_history(
    history: History, learnt: Learnt, *, found: Sequence[Memory], note: str, tokens: Tokens
) -> dict[str, Any]:
    """The counts of one question, with the texts behind them."""
    lines = [line for line in note.splitlines() if line.startswith(_LINE_START)]
    at = history.asked_at
    noted = {m.id: (note_line(m, now=at), sentence_line(m, now=at)) for m in learnt.memories}
    noted_ids = {memory_id for memory_id, shown in noted.items() if not set(shown).isdisjoint(lines)}
    found_ids = {memory.id for memory in found}
    return {
        "id": history.id,
        "type": history.question_type,
        "question": history.question,
        "answer": history.answer,
        "is_answered": _is_answered(history.answer, lines),
        "turns": len(learnt.turns),
        "memories": len(learnt.memories),
        "superseded": len(superseded_pairs(learnt)),
        "note": note,
        "note_tokens": tokens(note) if note else 0,
        "evidence": [
            _evidence_score(one, learnt, found_ids=found_ids, noted_ids=noted_ids) for one in history.evidence
        ],
    }


def _evidence_score(
    evidence: EvidenceTurn, learnt: Learnt, *, found_ids: Collection[str], noted_ids: Collection[str]
) -> dict[str, Any]:
    place = turn_id(scope_of(learnt.user_id, _RECORD, evidence.session), evidence.turn)
    standing = [memory for memory in learnt.memories if any(one.turn_id == place for one in memory.evidence)]
    return {
        "text": evidence.text,
        "is_learnt": bool(standing),
        "is_found": any(memory.id in found_ids for memory in standing),
        "is_noted": any(memory.id in noted_ids for memory in standing),
        "memories": [memory.content for memory in standing],
    }


def superseded_pairs(learnt: Learnt) -> list[dict[str, str | None]]:
    """Superseded memories with their successors; None without one, or if it is deleted."""
    contents = {memory.id: memory.content for memory in learnt.memories}
    return [
        {"old": memory.content, "new": contents.get(memory.superseded_by)}
        for memory in learnt.memories
        if memory.status is MemoryStatus.SUPERSEDED
    ]


def _is_answered(answer: str, lines: Sequence[str]) -> bool | None:
    """Whether the note's memories, with dates, contain all words of the answer; None for a long answer."""
    wanted = _words(answer)
    if not wanted or len(answer.split()) > ANSWER_WORDS_MAX:
        return None
    return wanted <= _words(" ".join(lines))


def _words(text: str) -> set[str]:
    """The words without the most common ones; numbers stay in one piece."""
    return set(_WORD.findall(text.lower().replace(",", ""))) - _COMMON_WORDS


def _figures(results: Sequence[Data]) -> dict[str, float | int | None]:
    """Shares of evidence turns, of questions with a short answer, and of memories."""
    evidence = [one for result in results for one in result["evidence"]]
    turns, memories, superseded = (
        sum(result[name] for result in results) for name in ("turns", "memories", "superseded")
    )
    return {
        "records": len(results),
        "turns": turns,
        "memories": memories,
        "evidence": len(evidence),
        "learnt": share(sum(one["is_learnt"] for one in evidence), len(evidence)),
        "found": share(sum(one["is_found"] for one in evidence), len(evidence)),
        "noted": share(sum(one["is_noted"] for one in evidence), len(evidence)),
        "answer": mean(result["is_answered"] for result in results),
        "superseded_share": share(superseded, memories),
        "memories_per_turn": share(memories, turns),
        "note_tokens": mean(result["note_tokens"] for result in results),
    }
