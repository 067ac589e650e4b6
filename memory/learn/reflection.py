"""What many memories about one matter have in common, said in one sentence: proposed by a model, checked by rules.

A reflection stands on other memories and quotes their evidence; nobody said it, so it is trusted least. It may not name
a name, a number or a "not" that its grounds do not have, and it is put away as soon as one of them no longer holds.
Without a model nothing is derived. It must never be derived from another reflection.
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
from memory.language import content_words, is_denied
from memory.learn.consolidation import EVIDENCE_MAX
from memory.learn.retention import RetentionReason, RetentionStep, put_away, usefulness
from memory.model import Memory, MemoryStatus, Message, Role, Trust
from memory.model.derived import REFLECTS, stands_on
from memory.ports import ChatModel

GROUNDS_MAX = 20  # of one reflection, the most useful ones
CHARACTERS_MAX = 300
FIRST_PERSON = frozenset(("I", "I'm", "I've", "I'd"))  # has its capital everywhere
NEW_WORDS_MAX = 0.4  # of the words of matter that no ground has: "prefers", "often", "various"
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
    """Memories about one subject, of one category, in one project: enough to say something of all of them."""

    key: tuple[str, str, str, str]  # project, agent, subject, category
    grounds: tuple[Memory, ...]


def matters(memories: Iterable[Memory], *, at_least: int, now: float) -> list[ReflectionTopic]:
    """Those of at least so many memories that no reflection tells of yet."""
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
    """Reflections whose grounds do not all hold any more, put away."""
    active = {memory.id for memory in memories if memory.status is MemoryStatus.ACTIVE}
    ours = [m for m in memories if m.id in active and m.memory_type == "reflective" and stands_on(m)]
    return [put_away(memory, RetentionReason.STALE, now=now) for memory in ours if not stands_on(memory) <= active]


def grounds_of(step: RetentionStep) -> frozenset[str]:
    """What has to hold for a new row to be written."""
    return stands_on(step.memory) if step.before is None else frozenset()


def is_grounded(summary: str, grounds: Sequence[Memory]) -> bool:
    """Whether it says nothing that the grounds do not: no new name, number or denial, and mostly their words."""
    if not summary.strip() or len(summary) > CHARACTERS_MAX or "\n" in summary.strip():
        return False
    known = frozenset[str]().union(*(content_words(memory.content) for memory in grounds))
    written = "\n".join(memory.content for memory in grounds).casefold()
    first, *rest = summary.split()
    marked = [word.strip(".,;:!?()\"'") for word in rest if word[:1].isupper() or any(c.isdigit() for c in word)]
    marked += [first] if any(c.isdigit() for c in first) else []
    if any(word.casefold() not in written for word in marked if word not in FIRST_PERSON):
        return False
    if is_denied(summary) and not any(is_denied(memory.content) for memory in grounds):
        return False
    words = content_words(summary)
    return bool(words & known) and len(words - known) <= NEW_WORDS_MAX * len(words)


class Reflector:
    """Asks a model for what the memories of each matter have in common."""

    def __init__(self, model: ChatModel, *, name: str, at_least: int, seconds: float) -> None:
        """`name` of the model, for the record; `at_least` so many memories about one matter; `seconds` per call."""
        self._model = model
        self._name = name
        self._at_least = at_least
        self._seconds = seconds

    async def derive(self, memories: Sequence[Memory], *, now: float) -> list[RetentionStep]:
        """New rows, not written yet. A model that is down, or says what nothing bears out, gives none."""
        steps = []
        for matter in matters(memories, at_least=self._at_least, now=now):
            try:
                summary = await self._asked(matter)
            except Unavailable:
                break  # the next round asks again
            if is_grounded(summary, matter.grounds):
                steps.append(
                    RetentionStep(
                        RetentionReason.REFLECTED, None, reflection(matter, summary, made_by=self._made_by, now=now)
                    )
                )
        return steps

    @property
    def _made_by(self) -> str:
        return f"{self._name[:200]} reflection-{VERSION}"

    async def _asked(self, matter: ReflectionTopic) -> str:
        notes = "\n".join(f"- {memory.content}" for memory in matter.grounds)
        messages = [Message(Role.SYSTEM, PROMPT), Message(Role.USER, notes)]
        said = await self._model.complete(messages, max_tokens=ANSWER_TOKENS, seconds=self._seconds, schema=SCHEMA)
        try:
            return str(json.loads(said.text)["summary"]).strip()
        except (ValueError, KeyError, TypeError):
            return ""


def reflection(matter: ReflectionTopic, summary: str, *, made_by: str, now: float) -> Memory:
    """The row; the same id for the same grounds."""
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
