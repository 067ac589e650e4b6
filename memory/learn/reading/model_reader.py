"""`StatementReader` that asks a chat model: one call per window, one per batch of pairs.

Every answer is a proposal. Items that fail a check or cannot be parsed are sent back once with the objections; if an
answer was truncated, the rest is requested once. Then the valid items are used; a window without any raises `Unusable`.
At most three calls per part of a window, two per batch of pairs. Never stores or logs what it reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory.errors import Unusable
from memory.learn.reading import prompting
from memory.learn.reading.answers import (
    CLAIMS,
    PAIRS,
    AnswerItems,
    ProposedVerdict,
    answer_items,
    claims_schema,
    pairs_schema,
    written,
)
from memory.learn.reading.checks import CheckedAnswer, LocatedClaim, check_answer, distinct_claims, merge_second_answer
from memory.learn.reading.prompting import Example
from memory.learn.reading.transcript import Transcript, one_line, transcripts
from memory.model import Claim, Message, Role, Turn
from memory.ports import ChatModel, Completion, PairRelation, PairVerdict, StatementPair
from memory.ports.paging import batched
from memory.runtime.metrics import Metrics
from memory.typed import converted

PAIRS_OF_CALL_MAX = 24
TOKENS_OF_VERDICT = 24  # with a margin; the size of a batch follows from the answer's limit
ECHO_CHARACTERS_MAX = 4_000  # of an answer that is sent back; only runaway answers are longer
OBJECTIONS_MAX = 6
CHANGED_CHARACTERS_MAX = 40  # "a word"
VERDICT_CONFIDENCE = {"high": 0.9, "low": 0.6}
UNANSWERED = PairVerdict(PairRelation.UNRELATED, 0.5)  # both statements stand

UNUSABLE = "an answer that cannot be used, and none better when sent back"
FORM = 'answer with {{"{key}":[...]}} as in the examples, complete, and nothing else'
BROKEN_OFF = "Your answer broke off. Give only what comes after its last whole entry, in the same form."
_NOTHING = CheckedAnswer()


@dataclass(frozen=True, slots=True)
class ModelReaderSettings:
    """How a model is asked. `name`: for `made_by`; `seconds`: per call; `max_tokens`: of an answer."""

    name: str
    seconds: float = 30.0
    max_tokens: int = 500
    examples: tuple[Example, ...] = ()
    topics: tuple[str, ...] = ()


class ModelReader:
    """`memory.ports.StatementReader`."""

    def __init__(self, model: ChatModel, asking: ModelReaderSettings, *, metrics: Metrics | None = None) -> None:
        self._model = model
        self._asking = asking
        self._metrics = metrics
        self._reading = prompting.read_prompt(asking.examples, asking.topics)
        self._relating = prompting.relate_prompt()
        self.name = f"{asking.name} read-{self._reading.version}"

    @property
    def prompt_version(self) -> str:
        """The version of both prompts, including the operator's examples and topics: part of the exam's key."""
        return f"{self._reading.version}-{self._relating.version}"

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        found: list[Claim] = []
        for part in await asyncio.to_thread(transcripts, turns, context=context):
            found += await self._claims(part)
        return found

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        found: list[PairVerdict] = []
        size = max(1, min(PAIRS_OF_CALL_MAX, self._asking.max_tokens // TOKENS_OF_VERDICT))
        for some in batched(pairs, size):
            found += await self._verdicts(some)
        return found

    async def _claims(self, part: Transcript) -> list[Claim]:
        messages, schema = self._reading.asked(part.text), claims_schema(len(part.numbered_units))
        said = await self._said(messages, schema)
        answer = answer_items(said.text, CLAIMS)
        if answer is not None and not answer.is_whole:
            answer = await self._with_rest(messages, schema, answer)
        first = self._checked(answer, part)
        found: Sequence[LocatedClaim] = first.sound
        if answer is None or first.objections:
            found = await self._mended(messages, said, answer, first, part)
        distinct = distinct_claims(found)
        self._count("claim", len(found) - len(distinct))
        return distinct

    async def _with_rest(
        self, messages: Sequence[Message], schema: Mapping[str, Any], answer: AnswerItems
    ) -> AnswerItems:
        """The complete items so far and those of one more call; none is made if the answer repeats itself."""
        self._count("rest")
        if answer.repeats_itself:
            return answer
        try:
            said = await self._said(_sent_back(messages, written(CLAIMS, answer.items), BROKEN_OFF), schema)
        except Unusable:
            return answer
        rest = answer_items(said.text, CLAIMS)
        more = [item for item in rest.items if item not in answer.items] if rest is not None else []
        return AnswerItems([*answer.items, *more], is_whole=True)

    async def _mended(
        self,
        messages: Sequence[Message],
        said: Completion,
        answer: AnswerItems | None,
        first: CheckedAnswer,
        part: Transcript,
    ) -> list[LocatedClaim]:
        """The valid claims of the first answer, with the model's corrections of the others. Raises `Unavailable`."""
        self._count("repair")
        is_left = bool(first.sound or first.doubtful)
        echo = written(CLAIMS, answer.items) if answer is not None else said.text
        told = _told(first.objections, "claims") or f"Not so: {FORM.format(key=CLAIMS)}."
        schema = claims_schema(len(part.numbered_units))
        again = await self._again(messages, echo, told, schema, CLAIMS, has_other=is_left)
        second = self._checked(again, part)
        kept, lost = [*second.sound, *second.doubtful], second.refused
        if answer is not None:
            kept = merge_second_answer(first, second)
            lost = first.refused - (len(kept) - len(first.sound) - len(first.doubtful))
        self._count("claim", lost)
        if not kept and (again is None or again.items):
            raise Unusable("model", UNUSABLE)
        return kept

    async def _verdicts(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        messages, schema = self._relating.asked(prompting.pairs_question(pairs)), pairs_schema(len(pairs))
        said = await self._said(messages, schema)
        answer = answer_items(said.text, PAIRS)
        found, objections = _verdicts_of(answer, len(pairs))
        if objections:
            self._count("repair")
            told = f"Not so: {FORM.format(key=PAIRS)}." if answer is None else _told(objections, "pairs")
            again = await self._again(messages, said.text, told, schema, PAIRS, has_other=bool(found))
            more, _ = _verdicts_of(again, len(pairs))
            found = {**more, **found}
            if not found:
                raise Unusable("model", UNUSABLE)
            if len(found) < len(pairs):
                self._count("verdict")
        return [found.get(number, UNANSWERED) for number in range(1, len(pairs) + 1)]

    async def _again(
        self, messages: Sequence[Message], echo: str, told: str, schema: Mapping[str, Any], key: str, *, has_other: bool
    ) -> AnswerItems | None:
        """The answer after sending back; None if unusable. `has_other`: there is a result even without it."""
        try:
            said = await self._said(_sent_back(messages, echo, told), schema)
        except Unusable:
            if not has_other:
                raise
            return None
        return answer_items(said.text, key)

    async def _said(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> Completion:
        asking = self._asking
        return await self._model.complete(messages, max_tokens=asking.max_tokens, seconds=asking.seconds, schema=schema)

    def _checked(self, answer: AnswerItems | None, part: Transcript) -> CheckedAnswer:
        return check_answer(answer.items, part, made_by=self.name) if answer is not None else _NOTHING

    def _count(self, of: str, times: int = 1) -> None:
        """Count a shortfall of the model, by what was done about it: asked again, or given up."""
        if self._metrics is not None:
            self._metrics.model_shortfalls.labels(of).inc(times)


def _sent_back(messages: Sequence[Message], answer: str, told: str) -> list[Message]:
    return [*messages, Message(Role.ASSISTANT, answer[:ECHO_CHARACTERS_MAX]), Message(Role.USER, told)]


def _told(objections: Sequence[str], what: str) -> str:
    if not objections:
        return ""
    shown = "; ".join(dict.fromkeys(objections[:OBJECTIONS_MAX]))
    return f"Not so: {shown}. Give only these {what} again, mended."


def _verdicts_of(answer: AnswerItems | None, pairs: int) -> tuple[dict[int, PairVerdict], list[str]]:
    """Verdicts by pair number, and objections that the model could correct."""
    found: dict[int, PairVerdict] = {}
    objections: list[str] = []
    for item in answer.items if answer is not None else ():
        try:
            one = converted(item, ProposedVerdict)
            relation = PairRelation(one.is_.strip().casefold())
        except ValueError:
            continue  # counted as missing
        if relation is PairRelation.REPLACES and not 0 < len(one_line(one.what)) <= CHANGED_CHARACTERS_MAX:
            objections.append(f'pair {one.n}: "what" must say in a word what was replaced')
        elif 1 <= one.n <= pairs:
            sure = VERDICT_CONFIDENCE.get(one.sure.strip().casefold(), VERDICT_CONFIDENCE["low"])
            found.setdefault(one.n, PairVerdict(relation, sure))
    missing = [str(number) for number in range(1, pairs + 1) if number not in found]
    if missing and not objections:
        objections.append(f"there is no answer for pair {', '.join(missing)}")
    return found, objections
