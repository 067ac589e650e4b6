"""Reads the data for evaluating recall: records of separate facts (JSON Lines), and LoCoMo's JSON of long talks.

Converts both to memories and questions; scores nothing. LoCoMo is licensed for evaluation only: nothing of it may be
copied into the project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from memory.errors import BadInput
from memory.evaluation.records import MessageRecord, file_bytes, read_records, seconds
from memory.model import Memory, MemoryStatus, Message
from memory.typed import converted, from_json

USER = "evaluation"
TURN_SECONDS = 30.0  # between two turns of a session, whose times are not in the data
ASKED_AFTER_SECONDS = 7 * 86_400.0  # questions about a talk come a week after its end
UNANSWERABLE = 5  # LoCoMo's category of questions without an answer
_TURN_ID = re.compile(r"D\d+:\d+")


@dataclass(frozen=True, slots=True)
class RecallCase:
    """One user's memories and one message. Indices are positions in `memories`."""

    id: str
    language: str
    tag: str
    memories: tuple[Memory, ...]
    history: tuple[Message, ...]
    question: str
    now: float
    relevant: frozenset[int]
    acceptable: frozenset[int]


@dataclass(frozen=True, slots=True)
class TalkQuestion:
    """A question with the positions of the turns that contain its answer, out of `evidence_count` named by the data."""

    text: str
    evidence: frozenset[int]
    evidence_count: int
    category: int


@dataclass(frozen=True, slots=True)
class Talk:
    """A long conversation with one memory per turn."""

    id: str
    memories: tuple[Memory, ...]
    questions: tuple[TalkQuestion, ...]
    asked_at: float


class _MemoryRecord(TypedDict):
    at: str
    text: str
    status: Literal["active", "superseded"]


class _RecallRecord(TypedDict):
    id: str
    lang: str
    memories: list[_MemoryRecord]
    history: list[MessageRecord]
    query: str
    now: str
    relevant: list[int]
    acceptable: list[int]
    tag: NotRequired[str]


class _TurnRecord(TypedDict):
    dia_id: str
    speaker: str
    text: str
    blip_caption: NotRequired[str | None]


class _QuestionRecord(TypedDict):
    question: str
    evidence: list[str]
    category: int


class _TalkRecord(TypedDict):
    sample_id: str
    conversation: dict[str, Any]
    qa: list[_QuestionRecord]


def read_recall(path: Path) -> list[RecallCase]:
    """Records of `{"id", "lang", "memories", "history", "query", "now", "relevant", "acceptable", "tag"?}`. Raises
    `BadInput`."""
    return read_records(path, _RecallRecord, _case, kind="recall")


def read_talks(path: Path) -> list[Talk]:
    """LoCoMo's own JSON: a list of `{"sample_id", "conversation", "qa"}`. Raises `BadInput`."""
    try:
        samples = from_json(file_bytes(path), list[_TalkRecord])
    except ValueError as error:
        raise BadInput(f"{path.name}: not LoCoMo's JSON: {error}") from error
    talks = []
    for sample in samples:
        try:
            talks.append(_talk(sample))
        except ValueError as error:
            raise BadInput(f"{path.name}, talk {sample['sample_id']!r}: not LoCoMo's JSON: {error}") from error
    if not any(talk.questions for talk in talks):
        raise BadInput(f"{path.name} holds no question that has evidence")
    return talks


def holds_talks(path: Path) -> bool:
    """Whether the file is one JSON list, hence LoCoMo, and not JSON Lines. Raises `BadInput`."""
    return file_bytes(path).lstrip()[:1] == b"["


def _case(record: _RecallRecord) -> RecallCase:
    memories = tuple(
        Memory(f"{i:03d}", USER, item["text"], at, at, at, status=MemoryStatus(item["status"]))
        for i, item in enumerate(record["memories"])
        for at in [seconds(item["at"])]
    )
    for field in ("relevant", "acceptable"):
        if any(not 0 <= position < len(memories) for position in record[field]):
            raise ValueError(f"there are {len(memories)} memories, counted from 0 - at `$.{field}`")
    return RecallCase(
        id=record["id"],
        language=record["lang"],
        tag=record.get("tag", ""),
        memories=memories,
        history=tuple(Message(role=m["role"], content=m["content"] or "") for m in record["history"]),
        question=record["query"],
        now=seconds(record["now"]),
        relevant=frozenset(record["relevant"]),
        acceptable=frozenset(record["acceptable"]),
    )


def _talk(sample: _TalkRecord) -> Talk:
    conversation = sample["conversation"]
    numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key) and conversation[key])
    if not numbers:
        raise ValueError("no session with turns - at `$.conversation`")
    memories: list[Memory] = []
    places: dict[str, int] = {}
    for number in numbers:
        began = _began(conversation, f"session_{number}_date_time")
        for place, turn in enumerate(_turns(conversation, f"session_{number}")):
            at = began + place * TURN_SECONDS
            places[turn["dia_id"]] = len(memories)
            session_id = f"session-{number:03d}"
            memories.append(Memory(turn["dia_id"], USER, turn_text(turn), at, at, at, session_id=session_id))
    questions = (_question(qa, places) for qa in sample["qa"])
    return Talk(
        id=sample["sample_id"],
        memories=tuple(memories),
        questions=tuple(question for question in questions if question is not None),
        asked_at=memories[-1].said_at + ASKED_AFTER_SECONDS,
    )


def _turns(conversation: Mapping[str, Any], key: str) -> list[_TurnRecord]:
    try:
        return converted(conversation[key], list[_TurnRecord])
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}, in `conversation.{key}`") from error


def _began(conversation: Mapping[str, Any], key: str) -> float:
    """Unix seconds of a time in LoCoMo's format, "1:56 pm on 8 May, 2023", taken as UTC."""
    try:
        return datetime.strptime(f"{conversation.get(key)} +0000", "%I:%M %p on %d %B, %Y %z").timestamp()
    except ValueError:
        raise ValueError(f"expected a time like 1:56 pm on 8 May, 2023 - at `conversation.{key}`") from None


def turn_text(turn: _TurnRecord) -> str:
    """A turn as one memory: `SPEAKER: TEXT [image: CAPTION]`."""
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [image: {caption}]" if caption else "")


def _question(qa: _QuestionRecord, places: Mapping[str, int]) -> TalkQuestion | None:
    """None for a question without an answer or evidence. Some evidence names several turns in one string."""
    named = {turn_id for entry in qa["evidence"] for turn_id in _TURN_ID.findall(entry)}
    if qa["category"] == UNANSWERABLE or not named:
        return None
    evidence = frozenset(places[turn_id] for turn_id in named if turn_id in places)
    return TalkQuestion(qa["question"], evidence, len(named), qa["category"])
