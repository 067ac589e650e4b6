"""Reads what recall is measured on: records of separate facts (JSON Lines), and LoCoMo's own JSON of long talks.

It turns both into memories and questions and never scores anything. LoCoMo is licensed for measuring only: nothing of
it may be copied into the project.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memory.errors import BadInput
from memory.model import Memory, MemoryStatus, Message

USER = "evaluation"
TURN_SECONDS = 30.0  # between two turns of a session, whose times the data does not tell
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
    """A question with the positions of the turns that hold its answer, out of `evidence_count` that the data names."""

    text: str
    evidence: frozenset[int]
    evidence_count: int
    category: int


@dataclass(frozen=True, slots=True)
class Talk:
    """A long conversation, every turn one memory."""

    id: str
    memories: tuple[Memory, ...]
    questions: tuple[TalkQuestion, ...]
    asked_at: float


def read_recall(path: Path) -> list[RecallCase]:
    """Records of `{"id", "lang", "memories", "history", "query", "now", "relevant", "acceptable", "tag"?}`. Raises
    `BadInput`."""
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                cases.append(_case(json.loads(line)))
            except (KeyError, ValueError, TypeError) as error:
                raise BadInput(f"{path.name}, line {number}: not a recall record ({error!r})") from error
    return cases


def read_talks(path: Path) -> list[Talk]:
    """LoCoMo's own JSON: a list of `{"sample_id", "conversation", "qa"}`. Raises `BadInput`."""
    try:
        return [_talk(sample) for sample in json.loads(path.read_bytes())]
    except (KeyError, ValueError, TypeError) as error:
        raise BadInput(f"{path.name}: not LoCoMo's JSON ({error!r})") from error


def holds_talks(path: Path) -> bool:
    """Whether the file is one JSON list, hence LoCoMo, and not JSON Lines."""
    with path.open("rb") as file:
        return file.read(64).lstrip()[:1] == b"["


def seconds(moment: str) -> float:
    """Unix seconds of an ISO 8601 time."""
    return datetime.fromisoformat(moment).timestamp()


def _case(record: Mapping[str, Any]) -> RecallCase:
    memories = tuple(
        _memory(f"{i:03d}", item["text"], seconds(item["at"]), status=MemoryStatus(item["status"]))
        for i, item in enumerate(record["memories"])
    )
    return RecallCase(
        id=record["id"],
        language=record["lang"],
        tag=record.get("tag", ""),
        memories=memories,
        history=tuple(Message(role=m["role"], content=m["content"]) for m in record["history"]),
        question=record["query"],
        now=seconds(record["now"]),
        relevant=frozenset(record["relevant"]),
        acceptable=frozenset(record["acceptable"]),
    )


def _talk(sample: Mapping[str, Any]) -> Talk:
    conversation = sample["conversation"]
    numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key) and conversation[key])
    memories: list[Memory] = []
    places: dict[str, int] = {}
    for number in numbers:
        began = _began(conversation[f"session_{number}_date_time"])
        for place, turn in enumerate(conversation[f"session_{number}"]):
            at = began + place * TURN_SECONDS
            places[turn["dia_id"]] = len(memories)
            memories.append(_memory(turn["dia_id"], turn_text(turn), at, session_id=f"session-{number:03d}"))
    questions = (_question(qa, places) for qa in sample["qa"])
    return Talk(
        id=sample["sample_id"],
        memories=tuple(memories),
        questions=tuple(question for question in questions if question is not None),
        asked_at=memories[-1].said_at + ASKED_AFTER_SECONDS,
    )


def _began(written: str) -> float:
    """Unix seconds of a time as LoCoMo writes it, "1:56 pm on 8 May, 2023", taken as UTC."""
    return datetime.strptime(f"{written} +0000", "%I:%M %p on %d %B, %Y %z").timestamp()


def turn_text(turn: Mapping[str, Any]) -> str:
    """A turn as one memory: `SPEAKER: TEXT [image: CAPTION]`."""
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [image: {caption}]" if caption else "")


def _question(qa: Mapping[str, Any], places: Mapping[str, int]) -> TalkQuestion | None:
    """None for a question without an answer or without evidence. Some evidence names several turns in one string."""
    named = {turn_id for entry in qa["evidence"] for turn_id in _TURN_ID.findall(entry)}
    if qa["category"] == UNANSWERABLE or not named:
        return None
    evidence = frozenset(places[turn_id] for turn_id in named if turn_id in places)
    return TalkQuestion(qa["question"], evidence, len(named), qa["category"])


def _memory(
    memory_id: str,
    content: str,
    at: float,
    *,
    session_id: str = "",
    status: MemoryStatus = MemoryStatus.ACTIVE,
) -> Memory:
    return Memory(
        id=memory_id,
        user_id=USER,
        content=content,
        created_at=at,
        updated_at=at,
        said_at=at,
        session_id=session_id,
        status=status,
    )
