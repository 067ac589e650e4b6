"""Single messages: how many leave a memory although they hold nothing lasting, and how much of what is lasting is kept.

Records are JSON Lines, plain or gzipped: `{"id", "text", "source"?, "lang"?, "kind"?, "facts"?: [{"span", "type"?}]}`,
where a fact is the part of the text that states something lasting about its author. The facts may stand in a second
file, `{"id", "facts", "kind"?}` a line, which then replace those of the first; its lines about other messages are left
out. A message without facts counts as one that holds none. Each is learnt as the only message of a user of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from memory.errors import BadInput
from memory.evaluation.records import Progress, counted, ignore_progress, read_records
from memory.evaluation.sandbox import Data, Learnt, Sandbox
from memory.evaluation.score import by_group, share
from memory.model import Memory, Role

ANSWER = "OK."
SAID_AT = "2025-10-09T09:00:00Z"
COVERED_SHARE_MIN = 0.6  # of a fact's distinct words, in one memory
_RECORD = "message"  # all records share one id: users tell them apart
_WORD = re.compile(r"[a-z0-9$']+|[\u4e00-\u9fff]")  # a Chinese character counts as a word

_Record = TypeVar("_Record", "LabelledMessage", "MessageLabels")


class LabelledFact(msgspec.Struct, frozen=True):
    """`span` has at least one word; `type` is not scored."""

    span: str
    type: str | None = ""

    def __post_init__(self) -> None:
        if not words_of(self.span):
            raise ValueError("a span needs a Latin letter, a digit or a Chinese character")


class MessageLabels(msgspec.Struct, frozen=True):
    """`facts` is empty if nothing lasting is stated."""

    id: str
    facts: tuple[LabelledFact, ...]
    kind: str | None = ""


class LabelledMessage(msgspec.Struct, frozen=True):
    """As in the file; likewise."""

    id: str
    text: str
    facts: tuple[LabelledFact, ...] | None = ()
    source: str | None = ""
    language: str | None = msgspec.field(default="", name="lang")
    kind: str | None = ""


def read_messages(path: Path, *, labels: Path | None = None) -> list[LabelledMessage]:
    """Raises `BadInput` naming the first invalid line, or one with a duplicate id."""
    if labels is None:
        return read_records(path, LabelledMessage, _each_once(), kind="messages")
    by_id = {one.id: one for one in read_records(labels, MessageLabels, _each_once(), kind="labels")}
    messages = read_records(path, LabelledMessage, _each_once(), kind="messages")
    if by_id.keys().isdisjoint(one.id for one in messages):
        raise BadInput(f"{labels.name} labels no message of {path.name}: their ids have nothing in common")
    return [_labelled(one, by_id.get(one.id)) for one in messages]


def _labelled(message: LabelledMessage, labels: MessageLabels | None) -> LabelledMessage:
    if labels is None:
        return message
    return msgspec.structs.replace(message, facts=labels.facts, kind=message.kind or labels.kind)


def _each_once() -> Callable[[_Record], _Record]:
    """Refuses a second record with the same id."""
    known: set[str] = set()

    def checked(record: _Record) -> _Record:
        if record.id in known:
            raise ValueError(f"an earlier line has the id {record.id!r:.80} - at `$.id`")
        known.add(record.id)
        return record

    return checked


def words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


async def evaluate_messages(
    messages: Sequence[LabelledMessage], sandbox: Sandbox, *, progress: Progress = ignore_progress
) -> dict[str, Any]:
    """The figures over all messages, by source and language if given, and the stored memories of each message.

    Raises `LearningFailed`, `Unavailable`.
    """
    results = [score_message(one, await sandbox.learn(_record(one))) for one in counted(messages, progress)]
    return {
        **_figures(results),
        "turns": sum(result["turns"] for result in results),
        "by_language": _grouped(results, "lang"),
        "by_source": _grouped(results, "source"),
        "per_record": results,
    }


def _record(message: LabelledMessage) -> Data:
    said = {"role": Role.USER, "content": message.text}
    return {
        "id": _RECORD,
        "sessions": [{"at": SAID_AT, "messages": [said, {"role": Role.ASSISTANT, "content": ANSWER}]}],
    }


def score_message(message: LabelledMessage, learnt: Learnt) -> dict[str, Any]:
    """The facts that each memory covers, and other memories. Quotes are searched in the recorded message."""
    facts = message.facts or ()
    spans = [words_of(fact.span) for fact in facts]
    # of its content and of the evidence for it: what else its sentence says is another fact
    held = [words_of(" ".join([m.content, *(evidence.words for evidence in m.evidence)])) for m in learnt.active]
    recorded = [said.content for turn in learnt.turns for said in turn.messages]
    return {
        "id": message.id,
        "lang": message.language or "",
        "source": message.source or "",
        "kind": message.kind or "",
        "turns": len(learnt.turns),
        "text": message.text,
        "facts": [
            {"span": fact.span, "type": fact.type or "", "is_covered": any(_covers(words, span) for words in held)}
            for fact, span in zip(facts, spans, strict=True)
        ],
        "memories": [
            {
                "content": memory.content,
                "quotes": [evidence.quote for evidence in memory.evidence],
                "is_verbatim": _is_verbatim(memory, recorded),
                "is_extra": not any(_covers(words, span) for span in spans),
            }
            for memory, words in zip(learnt.active, held, strict=True)
        ],
    }


def _covers(words: frozenset[str], span: frozenset[str]) -> bool:
    return len(words & span) >= COVERED_SHARE_MIN * len(span)


def _is_verbatim(memory: Memory, recorded: Sequence[str]) -> bool:
    quotes = [evidence.quote for evidence in memory.evidence]
    return bool(quotes) and all(any(quote in text for text in recorded) for quote in quotes)


def _grouped(results: Sequence[Data], field: str) -> dict[str, dict[str, float | int | None]]:
    """Figures by that field; without groups if no record has it."""
    return by_group(results, itemgetter(field), _figures) if any(result[field] for result in results) else {}


def _figures(results: Sequence[Data]) -> dict[str, float | int | None]:
    """Junk is a share of the messages without facts; extra memories are counted per message with facts."""
    without = [result for result in results if not result["facts"]]
    facts = [fact for result in results for fact in result["facts"]]
    memories = [memory for result in results for memory in result["memories"]]
    extra = sum(memory["is_extra"] for result in results if result["facts"] for memory in result["memories"])
    return {
        "records": len(results),
        "facts": len(facts),
        "memories": len(memories),
        "junk": share(sum(bool(result["memories"]) for result in without), len(without)),
        "coverage": share(sum(fact["is_covered"] for fact in facts), len(facts)),
        "extra_per_message": share(extra, len(results) - len(without)),
        "verbatim": share(sum(memory["is_verbatim"] for memory in memories), len(memories)),
        "memories_per_message": share(len(memories), len(results)),
    }
