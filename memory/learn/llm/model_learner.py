"""Extraction with a model: asks it, through the `ChatModel` port, what the pure parts have prepared, and in what order.

Two ways. `JudgeLearner` asks a small model one strict question at a time; `DraftLearner` has a larger one write all
facts of a window in one call. Every answer is a proposal: what cannot be read is sent back once with what was wrong.
What still cannot be read is left to the rules where they have a word of their own to say, question by question; only a
model that says nothing of use about a window at all has it given up as `Unusable("model", …)`, to be tried again later.
It must never store, but for what was heard, or log what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, TypeVar

from memory.errors import Unusable
from memory.learn.changes.supersession import Verdict
from memory.learn.consolidation import Pair
from memory.learn.facts import Fact
from memory.learn.llm import arbitration, drafting, judging
from memory.learn.llm.drafting import Drafted, Part
from memory.learn.llm.heard import Heard
from memory.learn.llm.judging import Unfit
from memory.learn.llm.prompting import Example, Prompt
from memory.learn.statements import verbatim
from memory.learn.statements.candidates import Proposal, proposals, with_meaning
from memory.metrics import Metrics
from memory.model import Memory, Message, Role, Turn
from memory.ports import ChatModel, Completion

ECHO_CHARACTERS_MAX = 8_000  # of an answer that is sent back to be mended: all but of one that ran wild
SILENT_QUESTIONS_MAX = 3  # without one answer that can be read: the fourth will not bring it
HALVINGS_MAX = 3  # of a part whose draft was cut: eighths of a window hold two or three turns
RESTS_MAX = 3  # calls for what is missing of a draft that was cut and cannot be halved
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

    def __init__(self, model: ChatModel, asking: Asking, metrics: Metrics | None = None) -> None:
        self._model = model
        self._asking = asking
        self._metrics = metrics

    async def answer(
        self,
        prompt: Prompt,
        question: str,
        *,
        heard: Heard,
        schema: Mapping[str, Any],
        read: Callable[[str], _Read],
        max_tokens: int,
    ) -> _Read:
        """What `read` makes of what was heard before, of the answer, or of the mended one.

        Raises `Unavailable`, and `Unusable` where none can be read.
        """
        known = heard.answer(prompt, question)
        if known is not None:
            with suppress(Unfit):  # of another release, say
                return read(known)
        messages = prompt.asked(question)
        tokens = min(max_tokens, self._asking.max_tokens)
        said = (await self._said(messages, tokens, schema)).text
        try:
            found = read(said)
        except Unfit as unfit:
            said = (await self._said(_sent_back(messages, said, str(unfit)), tokens, schema)).text
            try:
                found = read(said)
            except Unfit:
                raise Unusable("model", UNUSABLE) from None
        await heard.note(prompt, question, said)
        return found

    def fell_short(self, of: str) -> None:
        """Count what the model did not answer as it was asked to."""
        if self._metrics is not None:
            self._metrics.model_shortfalls.labels(of).inc()

    async def said(self, prompt: Prompt, question: str, *, schema: Mapping[str, Any]) -> Completion:
        """The answer as it is. Raises `Unavailable`."""
        return await self._said(prompt.asked(question), self._asking.max_tokens, schema)

    async def mended(
        self, prompt: Prompt, question: str, said: str, objections: str, *, schema: Mapping[str, Any]
    ) -> Completion:
        """The answer once more, after hearing what was wrong with it. Raises `Unavailable`."""
        messages = _sent_back(prompt.asked(question), said, objections)
        return await self._said(messages, self._asking.max_tokens, schema)

    async def _said(self, messages: Sequence[Message], tokens: int, schema: Mapping[str, Any]) -> Completion:
        return await self._model.complete(messages, max_tokens=tokens, seconds=self._asking.seconds, schema=schema)


def _sent_back(messages: Sequence[Message], said: str, objection: str) -> list[Message]:
    return [
        *messages,
        Message(Role.ASSISTANT, said[:ECHO_CHARACTERS_MAX]),
        Message(Role.USER, f"Not so: {objection}. Answer again."),
    ]


class JudgeLearner:
    """For small models: rules propose, the model says yes or no, and what "there" and "she" mean."""

    def __init__(self, model: ChatModel, asking: Asking, *, metrics: Metrics | None = None) -> None:
        self._questions = Questions(model, asking, metrics)
        self._asking = asking
        self._prompt = judging.keep_prompt(asking.examples, asking.topics)
        self._made_by = f"{asking.name} judge-{self._prompt.version}"

    async def extract(
        self, turns: Sequence[Turn], *, context: Sequence[Turn], heard: Heard | None = None
    ) -> list[Fact]:
        """At most `questions_max` questions, the undecided statements first.

        What is not asked, or gets no answer that can be read, is left to the rules, as if there were no model.
        Raises `Unavailable`, and `Unusable` where the model answers nothing of all this.
        """
        heard = heard or Heard()
        proposed = proposals(turns, context=context)
        undecided = [one for one in proposed if not one.is_sure][: self._asking.questions_max]
        words = await self._words(undecided, heard)
        kept = [one for one in proposed if words.get(id(one), one.is_sure or one.is_kept)]
        left = self._asking.questions_max - len(undecided)
        facts = []
        for one in kept:
            is_pointing = bool(one.points) and left > 0
            left -= is_pointing
            explained = await self._explained(one, heard) if is_pointing else None
            fact = explained or one.fact
            is_asked = explained is not None or id(one) in words
            facts.append(replace(fact, made_by=self._made_by) if is_asked else fact)
        return facts

    async def _words(self, undecided: Sequence[Proposal], heard: Heard) -> dict[int, bool]:
        """By id of the proposal, whether it is kept; those without an answer of use are left out."""
        words: dict[int, bool] = {}
        for number, one in enumerate(undecided, 1):
            try:
                words[id(one)] = await self._questions.answer(
                    self._prompt,
                    judging.keep_question(one),
                    heard=heard,
                    schema=judging.KEEP_SCHEMA,
                    read=judging.read_keep,
                    max_tokens=judging.KEEP_TOKENS,
                )
            except Unusable:
                if heard.is_silent and number >= min(SILENT_QUESTIONS_MAX, len(undecided)):
                    raise
                self._questions.fell_short("statement")
        return words

    async def _explained(self, proposal: Proposal, heard: Heard) -> Fact | None:
        """None where the model gives no answer that can be read: the fact stays as it was said."""
        try:
            meaning = await self._questions.answer(
                judging.meaning_prompt(),
                judging.meaning_question(proposal),
                heard=heard,
                schema=judging.MEANING_SCHEMA,
                read=judging.read_meaning,
                max_tokens=judging.MEANING_TOKENS,
            )
        except Unusable:
            self._questions.fell_short("meaning")
            return None
        return with_meaning(proposal, meaning) or proposal.fact


class DraftLearner:
    """For models of 7 B and more: one call per window, and more where rules object, or it has more to say than fits."""

    def __init__(self, model: ChatModel, asking: Asking, *, metrics: Metrics | None = None) -> None:
        self._questions = Questions(model, asking, metrics)
        self._prompt = drafting.draft_prompt(asking.examples, asking.topics)
        self._made_by = f"{asking.name} draft-{self._prompt.version}"

    async def extract(
        self, turns: Sequence[Turn], *, context: Sequence[Turn], heard: Heard | None = None
    ) -> list[Fact]:
        """What the model finds, and what no model is needed for: requests to remember, and bare confirmations."""
        heard = heard or Heard()
        given = [fact for fact in verbatim.extract(turns, context=context) if _is_given(fact)]
        drafted: list[Fact] = []
        for part in drafting.parts_of(_before_role_play(turns, context), context=context):
            drafted += await self._drafted(part, heard, HALVINGS_MAX)
        return _united(drafted, given)

    async def _drafted(self, part: Part, heard: Heard, halvings_left: int) -> list[Fact]:
        """Of a part whose answer was cut, what its two halves say; where it cannot be halved, rules say the rest."""
        if not any(verbatim.user_messages(turn) for turn in part.turns):
            return []
        halves = drafting.halves_of(part) if halvings_left > 0 else ()
        draft = await self._draft(part, heard, is_halved=bool(halves))
        if draft is None:
            return [fact for half in halves for fact in await self._drafted(half, heard, halvings_left - 1)]
        facts = drafting.facts_of(draft.facts, part, made_by=self._made_by)
        if draft.is_whole:
            return facts
        by_rules = verbatim.extract(part.turns, context=part.context)
        return [*facts, *(fact for fact in by_rules if not any(_overlap(one, fact) for one in facts))]

    async def _draft(self, part: Part, heard: Heard, *, is_halved: bool) -> drafting.Draft | None:
        """What was heard before, or is drafted now; None where it was cut, and its halves are to be asked instead."""
        question = drafting.chat_of(part)
        known = drafting.decode(heard.answer(self._prompt, question) or "")
        if known is not None and (known.is_whole or not is_halved):
            return known
        if known is not None:
            return None
        said = await self._questions.said(self._prompt, question, schema=drafting.SCHEMA)
        if not drafting.breaks_off(said.text, is_cut=said.is_cut):
            draft = drafting.Draft(await self._mended(part, question, said))
        else:
            self._questions.fell_short("draft")
            so_far = drafting.begun_facts(said.text)
            is_long = is_halved and said.is_cut
            draft = drafting.Draft(so_far, is_whole=False) if is_long else await self._rest(question, so_far)
        await heard.note(self._prompt, question, drafting.encode(draft))
        return None if is_halved and not draft.is_whole else draft

    async def _mended(self, part: Part, question: str, said: Completion) -> Sequence[Drafted]:
        """The facts of a whole answer, after the model has heard once what is wrong with them."""
        review = drafting.review(said.text, part)
        if not review.objections:
            return review.facts
        again = await self._again(question, said.text, review.objections)
        return _better(review.facts, again, part)

    async def _rest(self, question: str, so_far: Sequence[Drafted]) -> drafting.Draft:
        """Asks for what comes after the facts so far, as long as there is any."""
        found = list(so_far)
        for _ in range(RESTS_MAX):
            again = await self._again(question, drafting.encode(drafting.Draft(found)), drafting.BROKEN_OFF)
            quotes = {one.quote.strip() for one in found}
            more = [one for one in drafting.begun_facts(again.text) if one.quote.strip() not in quotes]
            found += more
            if not again.is_cut and drafting.is_readable(again.text):
                return drafting.Draft(found)
            if not more:
                break
        self._questions.fell_short("rest")
        return drafting.Draft(found, is_whole=False)

    async def _again(self, question: str, said: str, objections: str) -> Completion:
        return await self._questions.mended(self._prompt, question, said, objections, schema=drafting.SCHEMA)


def _before_role_play(turns: Sequence[Turn], context: Sequence[Turn]) -> Sequence[Turn]:
    """Whoever plays a part tells nothing about themselves, whatever a model makes of it."""
    if any(verbatim.opens_role_play(turn) for turn in context):
        return ()
    return list(takewhile(lambda turn: not verbatim.opens_role_play(turn), turns))


def _better(first: Sequence[Drafted], again: Completion, part: Part) -> Sequence[Drafted]:
    """The mended facts, and those of the first answer that were sound and got lost in mending; all, where it was cut.

    Raises `Unusable` where neither answer can be read.
    """
    second = drafting.review(again.text, part)
    if not second.facts and second.objections:
        if not first:
            raise Unusable("model", UNUSABLE)
        return first
    quotes = {one.quote.strip() for one in second.facts}
    is_cut = again.is_cut or not drafting.is_readable(again.text)
    kept = [one for one in first if is_cut or not drafting.objections([one], part)]
    return [*second.facts, *(one for one in kept if one.quote.strip() not in quotes)]


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

    def __init__(self, model: ChatModel, asking: Asking, *, pairs_max: int, metrics: Metrics | None = None) -> None:
        self._questions = Questions(model, asking, metrics)
        self._pairs_max = pairs_max

    async def changed(
        self, facts: Sequence[Fact], known: Sequence[Memory], *, heard: Heard | None = None
    ) -> Mapping[Pair, Verdict]:
        """By a fact's index and the id of the memory that it changes. What gets no answer that can be read stays two.

        Raises `Unavailable`, and `Unusable` where the model gave no answer of use in the whole window.
        """
        heard = heard or Heard()
        found: dict[Pair, Verdict] = {}
        for pair in arbitration.open_pairs(facts, known)[: self._pairs_max]:
            try:
                verdict = arbitration.ruling(pair, await self._word(pair, heard))
            except Unusable:
                if heard.is_silent:
                    raise
                self._questions.fell_short("pair")
                continue
            if verdict is not None:
                found[pair.index, pair.memory_id] = verdict
        return found

    async def _word(self, pair: arbitration.OpenPair, heard: Heard) -> str:
        return await self._questions.answer(
            arbitration.arbitrate_prompt(),
            arbitration.question(pair),
            heard=heard,
            schema=arbitration.SCHEMA,
            read=arbitration.read,
            max_tokens=arbitration.ANSWER_TOKENS,
        )


def _is_given(fact: Fact) -> bool:
    return fact.is_explicit or fact.evidence.role == Role.ASSISTANT


__all__ = ["Asking", "DraftLearner", "JudgeLearner", "ModelArbiter", "Questions"]
