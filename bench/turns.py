"""Turns as long as those of real chats, for the benches: a message of a user and the assistant's answer.

Lengths follow LongMemEval's evidence sessions (5,408 messages; users 255 characters in the mean, answers 2,150, all
1,200). Texts are not: users' messages are the trained reader's English training texts, which contain more facts than
real chats; answers are composed of the sentences below.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "reader"))
import texts  # isort: skip

QUANTILES = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1)
USER_CHARACTERS = (8, 58, 106, 130, 173, 232, 305, 387, 460, 821, 1_138, 5_425)
ANSWER_CHARACTERS = (28, 261, 783, 1_054, 1_695, 2_234, 2_657, 3_054, 3_295, 3_667, 4_012, 4_129)
SOURCES = ("en_daily", "en_plain", "en_tasks", "en_work")

OPENINGS = (
    "That sounds like a good plan, and there are a few things worth settling before you begin.",
    "Happy to help with that. Here is how I would go about it, step by step.",
    "Thanks for the background, it makes the choice a good deal easier.",
    "Good question. It depends on how much time you have, so here are the main options.",
)
POINTS = (
    "**Start small.** Pick one part that can be finished in an afternoon, and see how it goes before you buy more.",
    "**Write it down.** A short list of dates and prices keeps the later steps from getting in each other's way.",
    "**Compare offers.** Three are enough; ask each of them what is not included, since that is where they differ.",
    "**Plan for delays.** Leave a free day after every step that somebody else has to do.",
    "**Check what is there already.** Much can be repaired or borrowed, which is cheaper than it looks at first.",
    "**Ask early.** Permits, appointments and deliveries take longer than the work itself.",
    "**Keep it simple.** Few parts of good quality last longer than many that have to be replaced.",
    "**Take pictures.** Before and after each step, so that you can put everything back where it was.",
)
REMARKS = (
    "Most people underestimate how long the first step takes, so give yourself some room there.",
    "If the weather turns, the order of the last two steps can be swapped without any harm.",
    "It also helps to talk to somebody who has done it before, even if their case was a little different.",
    "The cost varies a lot by region and by season, so treat any figure you read as a rough guide.",
    "You can always come back to this later, since nothing here has to be decided today.",
    "There is no need to do everything at once, and the result is often better if you do not.",
)
CLOSING = "Would you like me to turn this into a plan for the coming weeks?"


def exchanges(count: int, *, characters: int = 0) -> list[tuple[str, str]]:
    """So many messages with their answers, the same in every run; `characters`: that many in each message instead."""
    chance, saying = random.Random(7), sayings()
    users = [characters] * count if characters else lengths(count, USER_CHARACTERS, chance)
    answers = lengths(count, ANSWER_CHARACTERS, chance)
    return [(message(saying, user), an_answer(chance, answer)) for user, answer in zip(users, answers, strict=True)]


def lengths(count: int, quantiles: Sequence[int], chance: random.Random) -> list[int]:
    """Spread evenly over the distribution, in a mixed order, so that a few already have its mean."""
    found = [int(n) for n in np.interp((np.arange(count) + 0.5) / count, QUANTILES, quantiles)]
    chance.shuffle(found)
    return found


@cache
def statements() -> tuple[str, ...]:
    own = [marked.text for marked in texts.messages() if marked.source.startswith(SOURCES) and not marked.before]
    random.Random(3).shuffle(own)
    return tuple(own)


def sayings() -> Iterator[str]:
    """Without an end; from the second time on with a number, so that it is not the same statement."""
    again = 0
    while True:
        for text in statements():
            yield f"{text} That was number {again}." if again else text
        again += 1


def message(saying: Iterator[str], characters: int) -> str:
    said = next(saying)
    while len(said) < characters:
        said += "\n\n" + next(saying)
    return cut(said, characters)


def an_answer(chance: random.Random, characters: int) -> str:
    said, number = chance.choice(OPENINGS), 0
    while len(said) < characters - len(CLOSING):
        number += 1
        said += f"\n\n{number}. {chance.choice(POINTS)} {chance.choice(REMARKS)}"
    return cut(f"{said}\n\n{CLOSING}", characters)


def cut(text: str, characters: int) -> str:
    """At the last blank before that length."""
    if len(text) <= characters:
        return text
    return text[: characters + 1].rsplit(maxsplit=1)[0] if " " in text[:characters] else text[:characters]
