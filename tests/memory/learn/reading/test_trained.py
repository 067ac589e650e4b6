"""The trained reader around its encoder: what the encoder gets to see, what becomes of its shares, and frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from claims import claim, turn
from hypothesis import given
from hypothesis import strategies as st
from trained_reader import FixedEncoder, trained_reader

from memory.learn.consolidation import REPLACES_MIN, UNRELATED_MIN
from memory.learn.frames import foreign
from memory.learn.reading.encoding import (
    BEFORE_TOKENS_MAX,
    CONTEXT_TOKENS_MAX,
    UNIT_TOKENS_MAX,
    WINDOW_TOKENS_MAX,
    Encoded,
    SpecialTokens,
    pair_window,
    windows_of,
)
from memory.learn.reading.judgements import JudgedClause, Judgement, with_leaning
from memory.learn.reading.labels import ACTS, FRAMES, REACHES
from memory.learn.reading.trained import TrainedReader
from memory.model import Turn
from memory.ports import FactContext, OrderReach, PairRelation, StatementPair

PAIR = StatementPair("I live in Leeds.", "I live in York.")


class StatingEncoder(FixedEncoder):
    """Says of every unit that it states something, and of those with "it" that they cannot be understood alone."""

    def judge(self, texts: Sequence[str], before: str) -> list[Judgement]:
        acts = {act: 0.99 if act == "state" else 0.0 for act in ACTS}
        return [replace(judged, acts=acts) for judged in super().judge(texts, before)]

    def leaning(self, texts: Sequence[str]) -> list[float]:
        return [0.97 * ("it" in text.split()) for text in texts]


async def test_what_cannot_be_understood_alone_takes_the_sentence_before_it_along() -> None:
    reader = TrainedReader(StatingEncoder())
    claims = await reader.read([turn("I bought a kayak. I paddle it at night.")], context=())
    assert [claim.text for claim in claims] == ["I bought a kayak.", "I bought a kayak. I paddle it at night."]


@pytest.mark.parametrize(("share", "said"), [(0.85, OrderReach.EVERYTHING), (0.75, OrderReach.TOPIC)])
async def test_what_deletes_everything_has_to_be_sure(share: float, said: OrderReach) -> None:
    class Reaching(FixedEncoder):
        def reaches(self, orders: Sequence[str]) -> list[Mapping[OrderReach, float]]:
            whole = dict.fromkeys(REACHES, 0.0) | {OrderReach.WHOLE: 0.6, OrderReach.TOPIC: 0.4}
            return [dict.fromkeys(REACHES, 0.0) | {OrderReach.EVERYTHING: share}, whole]

    assert await TrainedReader(Reaching()).reaches(["all of it", "all of Tom"]) == [said, OrderReach.WHOLE]


async def test_plain_orders_reach_as_far_as_they_say() -> None:
    orders = {
        "Please forget my shoe size.": OrderReach.TOPIC,
        "Bitte vergiss meine Kontonummer.": OrderReach.TOPIC,
        "请忘掉我的血型。": OrderReach.TOPIC,
        "Forget everything you know about me.": OrderReach.EVERYTHING,
        "Forget what I just said.": OrderReach.PREVIOUS,
        "Don't keep this conversation.": OrderReach.CONVERSATION,
        "Behalte nichts von diesem Gespräch.": OrderReach.CONVERSATION,
        "Never remember anything about me again.": OrderReach.STOP,
        "No wait, keep it.": OrderReach.REVOKED,
        "Nein, doch nicht, behalte sie.": OrderReach.REVOKED,
    }
    assert await trained_reader().reaches(list(orders)) == list(orders.values())


def test_each_clause_of_what_may_be_kept_is_judged_alone_with_the_two_sentences_before_it() -> None:
    texts = ["Hm.", "Hi.", "Well.", "I row and it rocks."]
    encoder, asked = StatingEncoder(), list[str]()
    nothing = [replace(one, acts={act: float(act == "none") for act in ACTS}) for one in encoder.judge(texts[:3], "")]
    (stated,) = encoder.judge(texts[3:], "")
    parts = [JudgedClause(start, end, stated.acts, "none", 1.0, "user", "fact") for start, end in ((0, 5), (10, 18))]

    def leaning(of: Sequence[str]) -> list[float]:
        asked.extend(of)
        return encoder.leaning(of)

    judged = with_leaning(texts, [*nothing, replace(stated, clauses=tuple(parts))], leaning)
    assert asked == ["Hi.", "Well.", "I row and it rocks.", "I row", "it rocks"]
    assert [clause.leaning_share for clause in judged[3].clauses] == [0.0, 0.97]


async def test_a_redacted_secret_is_read_as_a_value_and_moves_nothing_behind_it() -> None:
    encoder, message = FixedEncoder(), "The code is [redacted password] and I live in Leeds."
    await TrainedReader(encoder).read([turn(message)], context=())
    (seen,) = encoder.texts
    assert "redacted" not in seen
    assert (len(seen), seen.index("I live")) == (len(message), message.index("I live"))


@pytest.mark.parametrize(
    ("answer", "is_replied_to"),
    [
        ("Okay.", False),
        ("好的。", False),
        ("Do you row?", True),
        ("Rowing is a sport for the whole of the body.", True),
    ],
)
async def test_only_an_answer_that_says_or_asks_something_is_replied_to(answer: str, *, is_replied_to: bool) -> None:
    encoder = FixedEncoder()
    await TrainedReader(encoder).read([turn("On Tuesdays.")], context=[turn("Hi.", turn_id="t0", answer=answer)])
    assert encoder.before == [answer if is_replied_to else ""]


async def test_it_is_never_so_sure_of_no_relation_that_two_values_would_stand_apart_for_that() -> None:
    (verdict,) = await TrainedReader(FixedEncoder(unrelated=0.99)).relate([PAIR])
    assert (verdict.relation, verdict.confidence < UNRELATED_MIN) == (PairRelation.UNRELATED, True)


@pytest.mark.parametrize(("share", "is_sure"), [(0.62, True), (0.52, True), (0.48, False)])
async def test_a_change_loses_a_memory_and_has_to_be_sure(share: float, is_sure: bool) -> None:
    rest = (1.0 - share) / 2
    (verdict,) = await TrainedReader(FixedEncoder(replaces=share, same=rest, unrelated=rest)).relate([PAIR])
    assert (verdict.relation, verdict.confidence >= REPLACES_MIN) == (PairRelation.REPLACES, is_sure)


async def test_beside_what_is_meant_its_neighbours_are_not_replaced() -> None:
    olders = [("my flat is in Orle", 0.6), ("my parents' flat is in Orle", 0.45), ("my house is in Orle", 0.58)]
    pairs = [StatementPair(older, "I moved to Hamar", likeness=likeness) for older, likeness in olders]
    found = await TrainedReader(FixedEncoder(replaces=0.95, unrelated=0.05)).relate(pairs)
    assert [one.confidence >= REPLACES_MIN for one in found] == [True, False, True]


async def test_two_facts_of_one_sentence_each_replace_what_they_mean() -> None:
    said = FactContext("I moved to Hamar and sold the Volvo.")
    facts = [("my flat is in Orle", "I moved to Hamar", 0.5), ("I drive a Volvo", "sold the Volvo", 0.8)]
    pairs = [StatementPair(*texts, newer_context=said, likeness=likeness) for *texts, likeness in facts]
    found = await TrainedReader(FixedEncoder(replaces=0.95, unrelated=0.05)).relate(pairs)
    assert [one.confidence >= REPLACES_MIN for one in found] == [True, True]


async def test_a_fact_is_compared_with_the_whole_sentence_that_was_said_later() -> None:
    encoder = FixedEncoder(unrelated=0.9)
    said = FactContext("I swapped the keyboard, the monitor stays.")
    parts = [StatementPair("a Kolb keyboard", clause, newer_context=said) for clause in ("I swapped it", "it stays")]
    assert len(await TrainedReader(encoder).relate([*parts, PAIR])) == 3
    assert encoder.pairs == [("a Kolb keyboard", said.sentence), (PAIR.older, PAIR.newer)]


SPECIAL = SpecialTokens(start=1, end=2)


def encode(text: str) -> Encoded:
    """One token for each word."""
    words = text.split()
    return [len(word) + 10 for word in words], [(n, n + 1) for n in range(len(words))]


def test_a_short_message_is_one_window_with_its_answer_behind_it() -> None:
    (window,) = windows_of(["a bb", "ccc"], "is it so ?", encode=encode, special=SPECIAL)
    assert window.ids[:5] == (1, 11, 12, 13, 2)
    assert window.segments == (0,) * 5 + (1,) * 5
    assert [(p.index, p.first, p.stop) for p in window.units] == [(0, 1, 3), (1, 3, 4)]
    assert list(windows_of(list[str](), "before", encode=encode, special=SPECIAL)) == []
    (window,) = windows_of(["a"], "x " * 500 + "end", encode=encode, special=SPECIAL)  # of which the end is taken
    assert (len(window.ids), window.ids[-2]) == (3 + BEFORE_TOKENS_MAX + 1, 13)


@given(st.lists(st.integers(1, 200), max_size=60))
def test_every_unit_is_judged_once_in_windows_of_bounded_length(lengths: list[int]) -> None:
    units = ["w " * length for length in lengths]
    windows = windows_of(units, "", encode=encode, special=SPECIAL)
    judged = [placed.index for window in windows for placed in window.units if not placed.is_context]
    assert judged == list(range(len(units)))
    assert all(len(window.ids) <= WINDOW_TOKENS_MAX + 2 for window in windows)
    assert all(placed.stop - placed.first <= UNIT_TOKENS_MAX for window in windows for placed in window.units)


def test_the_end_of_a_window_is_context_of_the_next() -> None:
    units = ["w " * 60] * 6
    first, second = windows_of(units, "", encode=encode, special=SPECIAL)
    assert [p.index for p in first.units] == [0, 1, 2, 3]
    assert [(p.index, p.is_context) for p in second.units] == [(3, True), (4, False), (5, False)]
    assert 60 <= CONTEXT_TOKENS_MAX < 120


def test_a_pair_is_the_older_statement_then_the_newer() -> None:
    window = pair_window("a bb", "ccc", encode=encode, special=SPECIAL)
    assert (window.ids, window.segments) == ((1, 11, 12, 2, 13, 2), (0, 0, 0, 0, 1, 1))


# What is said in a role, or presented as somebody else's, is found until the user leaves the frame

KIND_OF = {
    "You are the king.": "plays",
    "That was the game.": "ends",
    "I leave the game and want it forgotten.": "ends",
    "My tenant wrote this:": "presents",
    "Hi,": "presents",
}


class FramingEncoder(FixedEncoder):
    """Knows the sentences in `KIND_OF`; counts the messages that it judges."""

    judged = 0

    def judge(self, texts: Sequence[str], before: str) -> list[Judgement]:
        self.judged += 1
        kinds = [KIND_OF.get(text, "plain") for text in texts]
        frames = [{one: float(one == kind) for one in FRAMES} for kind in kinds]
        told = super().judge(texts, before)
        return [replace(judged, frames=shares) for judged, shares in zip(told, frames, strict=True)]


def turns_of(*said: str) -> list[Turn]:
    return [turn(text, turn_id=f"t{index}", answer=f"So {index}.") for index, text in enumerate(said)]


async def found(*said: str) -> list[str]:
    turns = turns_of(*said)
    claims = [
        claim(f"{sentence.strip()}.", turn=one.id)
        for one in turns
        for sentence in one.messages[0].content.replace("\n", " ").replace(": ", ". ").rstrip(".").split(". ")
        if sentence.strip().startswith("I ")
    ]
    marks = await TrainedReader(FramingEncoder()).frames(turns)
    return [one.text for one in foreign(claims, turns, marks)]


async def test_a_role_holds_over_turns_until_the_user_leaves_it() -> None:
    said = ("I live in Leeds. You are the king. I own a ship.", "I am 140.", "That was the game. I like tea.", "I row.")
    assert await found(*said) == ["I own a ship.", "I am 140."]
    own = "I leave the game and want it forgotten."  # the sentence that ends it is the user's
    assert await found(f"You are the king. I own a ship. {own} I row.") == ["I own a ship."]


async def test_what_is_presented_is_the_rest_of_its_message_and_nothing_behind_a_comma() -> None:
    assert await found("I own a flat.\nMy tenant wrote this:\n\nI lost my job.", "I like tea.") == ["I lost my job."]
    assert await found("Hi,\n\nIt is late. I own a flat.") == []


async def test_a_frame_is_set_at_the_beginning_or_the_end_of_a_message() -> None:
    fill = "I row. " * 10
    assert await found(f"{fill}You are the king. {fill}", "I am 140.") == []
    assert await found(f"{fill}You are the king.", "I am 140.") == ["I am 140."]


async def test_a_message_that_was_read_is_not_judged_again_unless_it_replies_to_another_answer() -> None:
    encoder = FramingEncoder()
    answer = "An answer that says enough for a message to reply to it."
    reader = TrainedReader(encoder)
    turns = [replace(one, answer=answer) for one in turns_of("You are the king.", "I am 140.", "I row.")]
    await reader.read(turns[1:], context=turns[:1])
    assert encoder.judged == 2
    assert [(mark.kind, mark.turn_id) for mark in await reader.frames(turns)] == [("plays", "t0")]
    assert await reader.frames(turns) == await reader.frames(turns)
    assert encoder.judged == 3
    await reader.frames(turns[1:])
    assert encoder.judged == 4
