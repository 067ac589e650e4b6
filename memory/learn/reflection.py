"""Derives reflections: one sentence that several memories of one subject have in common, proposed by a model and
checked by rules.

A reflection is based on other memories (its grounds) and quotes their evidence; nobody said it, so it has the lowest
trust. It may not contain a name, number or negation that its grounds do not have, and it is archived as soon as one of
them becomes invalid. Without a model nothing is derived. Reflections are never derived from reflections.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory.errors import Unavailable
from memory.language.restating import adds_nothing
from memory.learn.consolidation import EVIDENCE_MAX
from memory.learn.retention import RetentionReason, RetentionStep, put_away, usefulness
from memory.model import Memory, MemoryStatus, Message, Role, Trust
from memory.model.derived import REFLECTS, stands_on
from memory.ports import ChatModel

GROUNDS_MAX = 20  # per reflection, the most useful ones
CHARACTERS_MAX = 300
NEW_WORDS_MAX = 0.4  # share of content words that no ground has: "prefers", "often", "various"
ANSWER_TOKENS = 120
PROMPT = (Path(__file__).parent / "reflection.txt").read_text(encoding="utf-8")
VERSION = hashlib.sha256(PROMPT.encode()).hexdigest()[:8]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"summary": {"type": "string", "maxLength": CHARACTERS_MAX}},
    "required": ["summary"],
    "additionalProperties": False,
}

_IDS = uuid.UUID("3d1f3c0a-7f0e-5a53-a9a5-0c4d9b8f6e27")


@dataclass(frozen=True, slots=True)
class ReflectionTopic:
    """Memories of one subject, category and project, enough for a reflection."""

    key: tuple[str, str, str, str]  # project, agent, subject, category
    grounds: tuple[Memory, ...]


def matters(memories: Iterable[Memory], *, at_least: int, now: float) -> list[ReflectionTopic]:
    """Topics with at least `at_least` memories and no current reflection."""
    told: set[tuple[str, str, str, str]] = set()
    groups: dict[tuple[str, str, str, str], list[Memory]] = {}
    for memory in memories:
        if memory.status is not MemoryStatus.ACTIVE:
            continue
        if memory.memory_type == "reflective":
            told.add(_key(memory))
        else:
            groups.setdefault(_key(memory), []).append(memory)
    return [
        ReflectionTopic(key, tuple(sorted(group, key=lambda m: (-usefulness(m, now), m.id))[:GROUNDS_MAX]))
        for key, group in groups.items()
        if len(group) >= at_least and key not in told
    ]


def stale(memories: Sequence[Memory], *, now: float) -> list[RetentionStep]:
    """Steps that archive reflections whose grounds are not all valid any more."""
    active = {memory.id for memory in memories if memory.status is MemoryStatus.ACTIVE}
    ours = [m for m in memories if m.id in active and m.memory_type == "reflective" and stands_on(m)]
    return [put_away(memory, RetentionReason.STALE, now=now) for memory in ours if not stands_on(memory) <= active]


def grounds_of(step: RetentionStep) -> frozenset[str]:
    """The ids that have to be valid for a new row to be written."""
    return stands_on(step.memory) if step.before is None else frozenset()


def is_grounded(summary: str, grounds: Sequence[Memory]) -> bool:
    """Whether the summary adds nothing to the grounds: no new name, number or negation, and mostly their words."""
    if not summary.strip() or len(summary) > CHARACTERS_MAX or "\n" in summary.strip():
        return False
    return adds_nothing(summary, [memory.content for memory in grounds], new_words_max=NEW_WORDS_MAX)


class Reflector:
    """Asks a model for what the memories of each topic have in common."""

    def __init__(self, model: ChatModel, *, name: str, at_least: int, seconds: float) -> None:
        """`name`: of the model, for the record; `at_least`: memories per topic; `seconds`: limit of one call."""
        self._model = model
        self._made_by = f"{name[:200]} reflection-{VERSION}"
        self._at_least = at_least
        self._seconds = seconds

    async def derive(self, memories: Sequence[Memory], *, now: float) -> list[RetentionStep]:
        """Steps for new rows. None if the model is down, or proposes what the grounds do not support."""
        steps = []
        for matter in matters(memories, at_least=self._at_least, now=now):
            try:
                summary = await self._asked(matter)
            except Unavailable:
                break  # retried in the next round
            if is_grounded(summary, matter.grounds):
                row = reflection(matter, summary, made_by=self._made_by, now=now)
                steps.append(RetentionStep(RetentionReason.REFLECTED, None, row))
        return steps

    async def _asked(self, matter: ReflectionTopic) -> str:
        notes = "\n".join(f"- {memory.content}" for memory in matter.grounds)
        messages = [Message(Role.SYSTEM, PROMPT), Message(Role.USER, notes)]
        said = await self._model.complete(messages, max_tokens=ANSWER_TOKENS, seconds=self._seconds, schema=SCHEMA)
        try:
            return str(json.loads(said.text)["summary"]).strip()
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""


def reflection(matter: ReflectionTopic, summary: str, *, made_by: str, now: float) -> Memory:
    """The row; its id is derived from its grounds."""
    first, ids = matter.grounds[0], [memory.id for memory in matter.grounds]
    evidence = dict.fromkeys(one for memory in matter.grounds for one in memory.evidence[:1])
    return Memory(
        id=str(uuid.uuid5(_IDS, "\x1f".join((first.user_id, *matter.key, *sorted(ids))))),
        user_id=first.user_id,
        project_id=first.project_id,
        agent_id=first.agent_id,
        content=summary,
        created_at=now,
        updated_at=now,
        said_at=max(memory.said_at for memory in matter.grounds),
        memory_type="reflective",
        category=first.category,
        source="conversation",
        importance=max(memory.importance for memory in matter.grounds),
        confidence=min(memory.confidence for memory in matter.grounds),
        trust=Trust.TOOL,
        made_by=made_by,
        subject=first.subject,
        evidence=tuple(evidence)[:EVIDENCE_MAX],
        metadata={REFLECTS: ids},
    )


def _key(memory: Memory) -> tuple[str, str, str, str]:
    return (memory.project_id, memory.agent_id, memory.subject, memory.category)
