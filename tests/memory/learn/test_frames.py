"""What is said in a role, or presented as somebody else's, is found until the user leaves the frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from claims import claim, turn

from memory.learn.frames import KINDS, PLAIN, Frames, _examples
from memory.model import Vector

KIND_OF = {"You are the king.": "plays", "That was the game.": "ends", "My tenant wrote this:": "presents"}


async def embedded(texts: Sequence[str]) -> dict[str, Vector]:
    """One direction a kind."""
    kinds = {**dict(_examples()), **KIND_OF}
    return {text: np.eye(len(KINDS), dtype=np.float32)[KINDS.index(kinds.get(text, PLAIN))] for text in texts}


async def foreign(*said: str) -> list[str]:
    turns = [turn(text, turn_id=f"t{index}") for index, text in enumerate(said)]
    claims = [
        claim(f"{sentence.strip()}.", turn=one.id)
        for one in turns
        for sentence in one.messages[0].content.replace("\n", " ").replace(": ", ". ").rstrip(".").split(". ")
        if sentence.strip().startswith("I ")
    ]
    return [found.text for found in await Frames(embedded).foreign(claims, turns)]


async def test_a_role_holds_over_turns_until_the_user_leaves_it() -> None:
    said = ("I live in Leeds. You are the king. I own a ship.", "I am 140.", "That was the game. I like tea.", "I row.")
    assert await foreign(*said) == ["I own a ship.", "I am 140."]


async def test_what_is_presented_is_the_rest_of_its_message() -> None:
    assert await foreign("I own a flat.\nMy tenant wrote this:\n\nI lost my job.", "I like tea.") == ["I lost my job."]
