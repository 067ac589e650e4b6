"""`GroundedWriter` that asks a chat model, once or twice: its answer is JSON that names the lines of each sentence.

An answer that cannot be parsed, or to which the caller objects, is sent back once with the objections. Lines and texts
appear in no log and no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memory.errors import Unavailable, Unusable
from memory.model import Message, Role
from memory.ports import ChatModel
from memory.ports.reading import GroundedSentence, Objections, WritingTask

PART = "model"
FORM = "Answer with JSON of this form, complete, and nothing else: "
OBJECTIONS_MAX = 6
ECHO_CHARACTERS_MAX = 4_000  # of an answer that is sent back
SHAPE = '{"sentences":[{"kind":"...","text":"...","lines":[1,2]}]}'


class _Sentence(msgspec.Struct):
    text: str
    lines: list[int]
    kind: str = ""


class _Written(msgspec.Struct):
    sentences: list[_Sentence]


_WRITTEN = msgspec.json.Decoder(_Written)


class ChatWriter:
    """`memory.ports.reading.GroundedWriter`. `seconds`: of one call; `answer_tokens_max`: the model's own limit."""

    def __init__(self, model: ChatModel, *, seconds: float, answer_tokens_max: int) -> None:
        self._model = model
        self._seconds = seconds
        self._answer_tokens_max = answer_tokens_max

    async def write(
        self, task: WritingTask, lines: Sequence[str], *, objections: Objections
    ) -> Sequence[GroundedSentence]:
        numbered = "\n".join(f"[{number}] {line}" for number, line in enumerate(lines, 1))
        asked = [Message(Role.SYSTEM, f"{task.instruction.strip()}\n{FORM}{SHAPE}"), Message(Role.USER, numbered)]
        said = await self._said(asked, task, len(lines))
        first, faults = _read(said, task, len(lines), objections)
        if not faults:
            return first
        told = f"Not so: {'; '.join(faults[:OBJECTIONS_MAX])}. Write all of it again."
        asked += [Message(Role.ASSISTANT, said[:ECHO_CHARACTERS_MAX]), Message(Role.USER, told)]
        try:
            again = await self._said(asked, task, len(lines))
        except Unavailable:
            if not first:
                raise
            return first
        second, more = _read(again, task, len(lines), objections)
        best = second if second and (not first or len(more) <= len(faults)) else first
        if not best:
            raise Unusable(PART, "no text that can be used, and none when sent back")
        return best

    async def _said(self, asked: Sequence[Message], task: WritingTask, lines: int) -> str:
        answer = await self._model.complete(
            asked,
            max_tokens=min(task.answer_tokens_max, self._answer_tokens_max),
            seconds=self._seconds,
            schema=_schema(task, lines),
        )
        return answer.text


def _read(
    said: str, task: WritingTask, lines: int, objections: Objections
) -> tuple[list[GroundedSentence], Sequence[str]]:
    """The sentences of an answer that name existing lines and kinds, and what is wrong with it."""
    try:
        written = _WRITTEN.decode(said)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return [], [f"it is not the JSON that was asked for. {FORM}{SHAPE}"]
    found = [
        GroundedSentence(" ".join(one.text.split()), tuple(dict.fromkeys(one.lines)), one.kind)
        for one in written.sentences[: task.sentences_max]
        if one.text.strip()
    ]
    known = [one for one in found if one.sources and all(1 <= number <= lines for number in one.sources)]
    known = [one for one in known if one.kind in task.kinds]
    faults = (
        [] if len(known) == len(found) else ["each sentence names its lines by their numbers, and one of the kinds"]
    )
    if not known:
        faults.append("there is no sentence")
    return known, [*faults, *objections(known)]


def _schema(task: WritingTask, lines: int) -> dict[str, Any]:
    number = {"type": "integer", "minimum": 1, "maximum": lines}
    properties: dict[str, Any] = {
        "kind": {"type": "string", "enum": list(task.kinds)},
        "text": {"type": "string"},
        "lines": {"type": "array", "items": number, "minItems": 1, "maxItems": min(lines, 20)},
    }
    sentence = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"sentences": {"type": "array", "items": sentence, "maxItems": task.sentences_max}},
        "required": ["sentences"],
        "additionalProperties": False,
    }
