"""What a small model is asked, one strict little question at a time, and what is believed of its answers.

Two questions: is this worth keeping, and what does this one word point to. The first is answered by a word out of two;
the second has to be copied out of what the user said, or it counts for nothing. Pure: asking is the learner's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from memory.learn.llm.prompting import Example, Prompt, prompt_of, shipped_examples
from memory.learn.statements.candidates import Proposal

KEEP_TOKENS = 16  # {"keep":"yes"} and the white space that some servers put into it
MEANING_TOKENS = 48
MEANING_CHARACTERS = 40
SHOWN_CHARACTERS = 240  # of each thing said before

KEEP_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"keep": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["keep"],
    "additionalProperties": False,
}
MEANING_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"means": {"type": "string", "maxLength": MEANING_CHARACTERS}},
    "required": ["means"],
    "additionalProperties": False,
}


class Unfit(ValueError):
    """An answer that cannot be used. The message says what was expected, for the model to mend it; no content."""


class _Keep(msgspec.Struct):
    keep: str


class _Meaning(msgspec.Struct):
    means: str


def keep_prompt(examples: Sequence[Example], topics: Sequence[str]) -> Prompt:
    ours = [msgspec.convert(example, Example) for example in shipped_examples("judge")]
    pairs = [(_said(e.before, e.said), {"keep": "yes" if e.keep else "no"}) for e in (*ours, *examples)]
    return prompt_of("judge", pairs, topics=topics)


def keep_question(proposal: Proposal) -> str:
    return _said(proposal.before, proposal.fact.evidence.quote)


def _said(before: str, said: str) -> str:
    return f"Assistant: {' '.join(before.split())}\nPerson: {said}" if before else f"Person: {said}"


def read_keep(answer: str) -> bool:
    """Raises `Unfit`."""
    try:
        word = msgspec.json.decode(answer, type=_Keep).keep.strip().casefold()
    except (msgspec.DecodeError, UnicodeError):
        raise Unfit('answer with {"keep":"yes"} or {"keep":"no"} and nothing else') from None
    if word not in ("yes", "no"):
        raise Unfit('"keep" must be "yes" or "no"')
    return word == "yes"


@cache
def meaning_prompt() -> Prompt:
    pairs = [(_pointing(e["before"], e["said"], e["word"]), {"means": e["means"]}) for e in shipped_examples("resolve")]
    return prompt_of("resolve", pairs)


def meaning_question(proposal: Proposal) -> str:
    return _pointing(proposal.earlier, proposal.fact.evidence.quote, proposal.points)


def _pointing(before: Sequence[str], said: str, word: str) -> str:
    shown = "\n".join(" ".join(text.split())[:SHOWN_CHARACTERS] for text in before)
    return f"Before:\n{shown}\nLast: {said}\nWord: {word}"


def read_meaning(answer: str) -> str:
    """What the word points to, unchecked; "" where the model finds nothing. Raises `Unfit`."""
    try:
        return msgspec.json.decode(answer, type=_Meaning).means.strip()
    except (msgspec.DecodeError, UnicodeError):
        raise Unfit('answer with {"means":"…"} and nothing else') from None


__all__ = ["Unfit", "keep_prompt", "keep_question", "meaning_prompt", "meaning_question", "read_keep", "read_meaning"]
