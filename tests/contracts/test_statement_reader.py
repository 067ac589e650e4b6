"""Statement readers: whoever decides what a message means keeps these promises. On every reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from plain_reader import PlainReader
from reading_parts import said
from scripted_model import LiteralChat
from trained_reader import trained_reader

from memory.learn.reading.assembly import LOST_SHARE_MIN
from memory.learn.reading.model_reader import ModelReader, ModelReaderSettings
from memory.model import Claim, Message, Role, Turn
from memory.ports import PairRelation, StatementPair, StatementReader

LONG = (
    "Hi, we have guests at the weekend and I could use some help with the food. I am allergic to peanuts. There will "
    "be six of us on Friday evening, and on Saturday two more arrive by train. My kitchen has a small oven and three "
    "rings. Could you put together a menu for both evenings, with a starter, a main dish and something sweet? Nothing "
    "that needs more than an hour, please, since work keeps me until five. The market closes at noon on Saturday, so "
    "a shopping list for each day would be good, sorted by stall. If a dish can be made the day before, say so, and "
    "tell me how to keep it. Last time the rice was too much for us, so be careful with amounts. One of the guests "
    "brings wine, so drinks are not needed, only water and maybe a lemonade for the children. It would also be nice "
    "to have a vegetarian choice each time, in case somebody asks for it. Write the menu so that it can be printed "
    "and put on the table, with short names for the dishes, and then the recipes one after the other. At the end add "
    "a plan of what happens when, from the morning on, with times. Thanks a lot, this saves me an evening."
)

FACTS = (
    "I live in Lisbon.",
    "My sister Ana is a vet.",
    "I am allergic to peanuts.",
    "I play the cello in an orchestra.",
)


READERS: dict[str, Callable[[], StatementReader]] = {
    "chat model": lambda: ModelReader(LiteralChat(), ModelReaderSettings("literal", max_tokens=10_000)),
    "plain, of the tests": PlainReader,
    "trained": trained_reader,
}  # one line per reader: the suite runs on each


@pytest.fixture(params=sorted(READERS))
def reader(request: pytest.FixtureRequest) -> StatementReader:
    return READERS[request.param]()


def assert_verbatim(found: Sequence[Claim], turns: Sequence[Turn], context: Sequence[Turn] = ()) -> None:
    """Each quote stands in a message of the user in these turns, or it is a question of the assistant's, marked so."""
    own = {turn.id: [message.content for message in turn.messages] for turn in turns}
    answers = {turn.id: turn.answer for turn in (*context, *turns)}
    for claim in found:
        quote, turn_id = claim.evidence.quote, claim.evidence.turn_id
        assert quote.strip()
        if claim.evidence.role == Role.ASSISTANT:
            assert quote in answers[turn_id]
        else:
            assert any(quote in message for message in own[turn_id])
        assert claim.evidence.words in claim.text
        assert claim.made_by


@pytest.mark.parametrize("fact", FACTS)
async def test_a_plain_fact_is_read_and_quoted_word_for_word(reader: StatementReader, fact: str) -> None:
    turns = said(fact)
    found = await reader.read(turns, context=[])
    assert_verbatim(found, turns)
    assert [claim.evidence.quote for claim in found] == [fact]
    assert (found[0].scope, found[0].said_at) == (turns[0].scope, turns[0].at)


async def test_claims_come_in_the_order_said(reader: StatementReader) -> None:
    turns = said(f"{FACTS[0]} {FACTS[1]}", FACTS[2], FACTS[3])
    found = await reader.read(turns, context=[])
    assert_verbatim(found, turns)
    places = [(claim.evidence.turn_id, claim.evidence.quote) for claim in found]
    order = {(turn.id, fact): n for n, (turn, fact) in enumerate(zip((turns[0], *turns), FACTS, strict=True))}
    known = [order[place] for place in places if place in order]
    assert known == sorted(known)
    assert len(known) >= 2


async def test_several_messages_of_one_turn_are_all_read(reader: StatementReader) -> None:
    (turn,) = said(FACTS[0])
    both = Turn(turn.id, turn.scope, turn.at, (*turn.messages, Message("user", FACTS[2])))
    found = await reader.read([both], context=[])
    assert {claim.evidence.quote for claim in found} == {FACTS[0], FACTS[2]}


async def test_context_gives_no_claims(reader: StatementReader) -> None:
    assert await reader.read([], context=said(FACTS[0])) == []
    context = said(FACTS[0], FACTS[1], answers=["Lovely!", "Noted. What else?"])
    turns = [Turn("later", turn.scope, turn.at + 60, turn.messages) for turn in said(FACTS[2])]
    found = await reader.read(turns, context=context)
    assert_verbatim(found, turns, context)
    assert {claim.evidence.turn_id for claim in found if claim.evidence.role == Role.USER} == {"later"}


async def test_what_the_assistant_or_a_tool_said_gives_no_claims(reader: StatementReader) -> None:
    (turn,) = said("Thanks!", answers=[FACTS[0]])
    messages = (Message("system", FACTS[1]), Message("user", FACTS[2], is_tool_traffic=True), *turn.messages)
    turns = [Turn(turn.id, turn.scope, turn.at, messages, answer=turn.answer)]
    assert await reader.read(turns, context=[]) == []


@pytest.mark.parametrize(
    "message",
    [*["", " \n\t", "?", "我", "🙂", "\ud800", "\x00"], "```python\nMY_HOME = 'Lisbon'\n```", "~~~\nI live here\n~~~"],
)
async def test_what_says_nothing_gives_nothing(reader: StatementReader, message: str) -> None:
    assert await reader.read(said(message), context=[]) == []


async def test_a_long_message_with_a_fact_in_it_is_quoted_word_for_word(reader: StatementReader) -> None:
    turns = said(LONG)
    found = await reader.read(turns, context=[])
    assert_verbatim(found, turns)
    assert FACTS[2] in {claim.evidence.quote for claim in found}


async def test_our_own_encoder_tells_what_leans_on_other_words() -> None:
    reader = trained_reader()
    assert await reader.leaning([]) == []
    shares = await reader.leaning([*FACTS, "He is six.", "At most 140 euros."])
    assert [share >= LOST_SHARE_MIN for share in shares] == [False] * len(FACTS) + [True, True]


async def test_every_pair_gets_one_verdict_in_order(reader: StatementReader) -> None:
    same, other = StatementPair(FACTS[0], FACTS[0]), StatementPair(FACTS[0], "The cello needs new strings.")
    found = await reader.relate([same, other, same, other])
    assert [one.relation for one in found] == [PairRelation.SAME, PairRelation.UNRELATED] * 2
    assert all(0.0 <= one.confidence <= 1.0 for one in found)


@pytest.mark.parametrize(
    "texts",
    [
        *([f"I own {n} boats." for n in range(count)] for count in (0, 1, 12, 13)),
        ["", " ", "a", "\ud800", "x" * 10_000, "line\n[2] older: another"],
    ],
)
async def test_any_number_of_pairs_of_any_texts_can_be_related(reader: StatementReader, texts: list[str]) -> None:
    pairs = [StatementPair(*pair) for text in texts for pair in ((text, FACTS[0]), (FACTS[0], text))]
    assert len(await reader.relate(pairs)) == len(pairs)
