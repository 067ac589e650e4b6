"""What is said in a role, or presented as somebody else's, is found until the user leaves the frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from claims import claim, turn
from trained_reader import FixedEncoder

from memory.learn.frames import foreign
from memory.learn.reading.judgements import Judgement
from memory.learn.reading.labels import FRAMES
from memory.learn.reading.trained import TrainedReader
from memory.model import Turn

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


async def test_the_sentence_that_ends_a_role_is_the_user_s_own() -> None:
    said = "You are the king. I own a ship. I leave the game and want it forgotten. I row."
    assert await found(said) == ["I own a ship."]


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
