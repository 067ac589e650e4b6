"""Extraction with a model: asks it, through the `ChatModel` port, what the pure parts have prepared, and in what order.

Two ways. `JudgeLearner` asks a small model one strict question at a time; `DraftLearner` has a larger one write all
facts of a window in one call. Every answer is a proposal: what cannot be read is sent back once with what was wrong,
then the window is given up as `Unusable("model", …)`, to be tried again later. It must never store, or log what it
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, TypeVar

from memory.errors import Unusable
from memory.learn import arbitration, drafting, judging, verbatim
from memory.learn.candidates import Proposal, proposals, with_meaning
from memory.learn.consolidation import Pair
from memory.learn.facts import Fact
from memory.learn.judging import Unfit
from memory.learn.prompting import Example, Prompt
from memory.learn.supersession import Verdict
from memory.model import Memory, Message, Role, Turn
from memory.ports import ChatModel

ECHO_CHARACTERS_MAX = 8_000  # of an answer that is sent back to be mended: all but of one that ran wild
UNUSABLE = "an answer that cannot be used, and none better when told"

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked. `name` stands in what it makes; `seconds` per call; at most `questions_max` per window."""

    name: str
    seconds: float = 30.0
    max_tokens: int = 500
    questions_max: int = 60
    examples: tuple[Example, ...] = ()
    topics: tuple[str, ...] = ()


class Questions:
    """Puts one question after the other, so that each finds its prefix in the server's cache."""

    def __init__(self, model: ChatModel, asking: Asking) -> None:
        self._model = model
        self._asking = asking

    async def answer(
        self,
        prompt: Prompt,
        question: str,
        *,
        schema: Mapping[str, Any],
        read: Callable[[str], _Read],
        max_tokens: int | None = None,
    ) -> _Read:
        """What `read` makes of the answer, or of the mended one. Raises `Unavailable`, or `Unusable` for neither."""
        messages = prompt.asked(question)
        tokens = min(max_tokens or self._asking.max_tokens, self._asking.max_tokens)
        said = await self._said(messages, tokens, schema)
        try:
            return read(said)
        except Unfit as unfit:
            mended = await self._said(_sent_back(messages, said, str(unfit)), tokens, schema)
        try:
            return read(mended)
        except Unfit:
            raise Unusable("model", UNUSABLE) from None

    async def said(self, prompt: Prompt, question: str, *, schema: Mapping[str, Any]) -> str:
        """The answer as it is. Raises `Unavailable`."""
        return await self._said(prompt.asked(question), self._asking.max_tokens, schema)

    async def mended(
        self, prompt: Prompt, question: str, said: str, objections: str, *, schema: Mapping[str, Any]
    ) -> str:
        """The answer once more, after hearing what was wrong with it. Raises `Unavailable`."""
        messages = _sent_back(prompt.asked(question), said, objections)
        return await self._said(messages, self._asking.max_tokens, schema)

    async def _said(self, messages: Sequence[Message], tokens: int, schema: Mapping[str, Any]) -> str:
        said = await self._model.complete(messages, max_tokens=tokens, seconds=self._asking.seconds, schema=schema)
        return said.text


def _sent_back(messages: Sequence[Message], said: str, objection: str) -> list[Message]:
    return [
        *messages,
        Message(Role.ASSISTANT, said[:ECHO_CHARACTERS_MAX]),
        Message(Role.USER, f"Not so: {objection}. Answer again."),
    ]


class JudgeLearner:
    """For small models: rules propose, the model says yes or no, and what "there" and "she" mean."""

    def __init__(self, model: ChatModel, asking: Asking) -> None:
        self._questions = Questions(model, asking)
        self._asking = asking
        self._prompt = judging.keep_prompt(asking.examples, asking.topics)
        self._made_by = f"{asking.name} judge-{self._prompt.version}"

    async def extract(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Fact]:
        """At most `questions_max` calls, the undecided statements first; what is not asked is left to the rules."""
        proposed = proposals(turns, context=context)
        undecided = [one for one in proposed if not one.is_sure][: self._asking.questions_max]
        refused = {id(one) for one in undecided if not await self._is_kept(one)}
        asked = {id(one) for one in undecided}
        kept = [one for one in proposed if id(one) not in refused and (one.is_sure or one.is_kept or id(one) in asked)]
        left = self._asking.questions_max - len(undecided)
        facts = []
        for one in kept:
            is_pointing = bool(one.points) and left > 0
            left -= is_pointing
            fact = await self._explained(one) if is_pointing else one.fact
            facts.append(replace(fact, made_by=self._made_by) if is_pointing or id(one) in asked else fact)
        return facts

    async def _is_kept(self, proposal: Proposal) -> bool:
        return await self._questions.answer(
            self._prompt,
            judging.keep_question(proposal),
            schema=judging.KEEP_SCHEMA,
            read=judging.read_keep,
            max_tokens=judging.KEEP_TOKENS,
        )

    async def _explained(self, proposal: Proposal) -> Fact:
        meaning = await self._questions.answer(
            judging.meaning_prompt(),
            judging.meaning_question(proposal),
            schema=judging.MEANING_SCHEMA,
            read=judging.read_meaning,
            max_tokens=judging.MEANING_TOKENS,
        )
        return with_meaning(proposal, meaning) or proposal.fact


class DraftLearner:
    """For models of 7 B and more: one call per window, and one more where rules object to what it says."""

    def __init__(self, model: ChatModel, asking: Asking) -> None:
        self._questions = Questions(model, asking)
        self._prompt = drafting.draft_prompt(asking.examples, asking.topics)
        self._made_by = f"{asking.name} draft-{self._prompt.version}"

    async def extract(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Fact]:
        """What the model finds, and what no model is needed for: requests to remember, and bare confirmations."""
        given = [fact for fact in verbatim.extract(turns, context=context) if _is_given(fact)]
        drafted: list[Fact] = []
        for part in drafting.parts_of(_before_role_play(turns, context), context=context):
            if any(verbatim.user_messages(turn) for turn in part.turns):
                drafted += await self._drafted(part)
        return _united(drafted, given)

    async def _drafted(self, part: drafting.Part) -> list[Fact]:
        question = drafting.chat_of(part)
        said = await self._questions.said(self._prompt, question, schema=drafting.SCHEMA)
        draft = drafting.review(said, part)
        facts = draft.facts
        if draft.objections:
            again = await self._questions.mended(self._prompt, question, said, draft.objections, schema=drafting.SCHEMA)
            facts = _better(facts, again, part)
        return drafting.facts_of(facts, part, made_by=self._made_by)


def _before_role_play(turns: Sequence[Turn], context: Sequence[Turn]) -> Sequence[Turn]:
    """Whoever plays a part tells nothing about themselves, whatever a model makes of it."""
    if any(verbatim.opens_role_play(turn) for turn in context):
        return ()
    return list(takewhile(lambda turn: not verbatim.opens_role_play(turn), turns))


def _better(first: Sequence[drafting.Drafted], again: str, part: drafting.Part) -> Sequence[drafting.Drafted]:
    """The mended facts, and those of the first answer that were sound and got lost in mending.

    Raises `Unusable` where neither answer can be read.
    """
    second = drafting.review(again, part)
    if not second.facts and second.objections:
        if not first:
            raise Unusable("model", UNUSABLE)
        return first
    quotes = {one.quote.strip() for one in second.facts}
    sound = [one for one in first if not drafting.objections([one], part)]
    return [*second.facts, *(one for one in sound if one.quote.strip() not in quotes)]


def _united(drafted: Sequence[Fact], given: Sequence[Fact]) -> list[Fact]:
    """What the model left out of what was given; what it drafted of that, still as something asked to be remembered."""
    asked = [fact for fact in given if fact.is_explicit]
    marked = [replace(one, is_explicit=any(_overlap(one, fact) for fact in asked)) for one in drafted]
    return [*marked, *(fact for fact in given if not any(_overlap(one, fact) for one in drafted))]


def _overlap(one: Fact, other: Fact) -> bool:
    """Whether both quote the same words of one turn."""
    if (one.evidence.turn_id, one.evidence.role) != (other.evidence.turn_id, other.evidence.role):
        return False
    return one.evidence.quote in other.evidence.quote or other.evidence.quote in one.evidence.quote


class ModelArbiter:
    """`memory.learn.window.Arbiter`: asks about the pairs that rules leave open, the first few of a window."""

    def __init__(self, model: ChatModel, asking: Asking, *, pairs_max: int) -> None:
        self._questions = Questions(model, asking)
        self._pairs_max = pairs_max

    async def changed(self, facts: Sequence[Fact], known: Sequence[Memory]) -> Mapping[Pair, Verdict]:
        """By a fact's index and the id of the memory that it changes. Raises `Unavailable`."""
        found: dict[Pair, Verdict] = {}
        for pair in arbitration.open_pairs(facts, known)[: self._pairs_max]:
            verdict = arbitration.ruling(pair, await self._word(pair))
            if verdict is not None:
                found[pair.index, pair.memory_id] = verdict
        return found

    async def _word(self, pair: arbitration.OpenPair) -> str:
        return await self._questions.answer(
            arbitration.arbitrate_prompt(),
            arbitration.question(pair),
            schema=arbitration.SCHEMA,
            read=arbitration.read,
            max_tokens=arbitration.ANSWER_TOKENS,
        )


def _is_given(fact: Fact) -> bool:
    return fact.is_explicit or fact.evidence.role == Role.ASSISTANT


__all__ = ["Asking", "DraftLearner", "JudgeLearner", "ModelArbiter", "Questions"]
