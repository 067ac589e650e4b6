"""Finds the claims that authors make in a role, or quote without marks: they are evidence of nothing about the author.

A role play holds from the sentence that opens it until one that ends it, over the turns of a conversation; what a
sentence presents ("My tenant sent me this, what do I answer?") is the rest of its message. Which sentences do that is
decided by the trained reader. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from memory.learn.reading.units import own_messages
from memory.model import Claim, Turn
from memory.ports import FrameKind, FrameMark

Span = tuple[str, int, int, int]
"""Turn, index of the message, and the characters from and to which its words are not the author's own."""


def foreign(claims: Sequence[Claim], turns: Sequence[Turn], marks: Sequence[FrameMark]) -> list[Claim]:
    """Those of the claims whose words stand in a frame. `turns`: of the conversation; all in the order said."""
    spans = list(_spans(turns, marks))
    return [claim for claim in claims if any(_is_within(claim, span, turns) for span in spans)]


def _spans(turns: Sequence[Turn], marks: Sequence[FrameMark]) -> Iterator[Span]:
    marked: defaultdict[tuple[str, int], list[FrameMark]] = defaultdict(list)
    for mark in marks:
        marked[mark.turn_id, mark.message].append(mark)
    plays = False
    for turn in turns:
        for index, message in enumerate(own_messages(turn)):
            since = 0 if plays else -1
            for mark in marked[turn.id, index]:
                if not plays and mark.kind is FrameKind.PLAYS:
                    plays, since = True, mark.start
                elif plays and mark.kind is FrameKind.ENDS:
                    yield turn.id, index, since, mark.end
                    plays, since = False, -1
                elif mark.kind is FrameKind.PRESENTS:
                    yield turn.id, index, mark.end, len(message)
            if plays:
                yield turn.id, index, since, len(message)


def _is_within(claim: Claim, span: Span, turns: Sequence[Turn]) -> bool:
    turn_id, index, start, end = span
    if claim.evidence.turn_id != turn_id:
        return False
    message = next(list(own_messages(turn))[index] for turn in turns if turn.id == turn_id)
    at = message.find(claim.evidence.quote)
    return start <= at < end


__all__ = ["foreign"]
