"""Finds the claims that authors make in a role, or quote without marks: they are evidence of nothing about the author.

A role play holds from the sentence that opens it until one that ends it, over the turns of a conversation; what a
sentence presents ("My tenant sent me this, what do I answer?") is the rest of its message. Which sentences do that is
decided by the trained reader. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memory.learn.reading.units import own_messages
from memory.model import Claim, Turn
from memory.ports import FrameKind, FrameMark


def foreign(claims: Sequence[Claim], turns: Sequence[Turn], marks: Sequence[FrameMark]) -> list[Claim]:
    """Those of the claims whose words stand in a frame. `turns`: of the conversation; all in the order said."""
    spans = list(_spans(turns, marks))
    return [
        claim
        for claim in claims
        if any(
            claim.evidence.turn_id == turn_id and start <= message.find(claim.evidence.quote) < end
            for turn_id, message, start, end in spans
        )
    ]


def _spans(turns: Sequence[Turn], marks: Sequence[FrameMark]) -> Iterator[tuple[str, str, int, int]]:
    """Turn, message, and the characters from and to which its words are not the author's own."""
    plays = False
    for turn in turns:
        for index, message in enumerate(own_messages(turn)):
            since = 0 if plays else -1
            for mark in (one for one in marks if (one.turn_id, one.message) == (turn.id, index)):
                if not plays and mark.kind is FrameKind.PLAYS:
                    plays, since = True, mark.start
                elif plays and mark.kind is FrameKind.ENDS:
                    yield turn.id, message, since, mark.start
                    plays, since = False, -1
                elif mark.kind is FrameKind.PRESENTS:
                    yield turn.id, message, mark.end, len(message)
            if plays:
                yield turn.id, message, since, len(message)
