"""Which turns of a window leave nothing behind but memories: no raw words, and no part in a summary. Pure.

Of such a turn something is withheld, whether or not anything of it would have been learnt: it makes a request to forget
or to withhold, or such a request, made in the window or since, means something that it says. Rather too many turns than
too few: what else they say is learnt all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memory.learn.forgetting import (
    ForgetReach,
    ForgetRequest,
    is_forgotten_later,
    says_topic,
    split_claims,
    turn_meant,
)
from memory.learn.reading.units import own_messages
from memory.model import Claim, Turn


def withheld_turns(
    turns: Sequence[Turn], claims: Sequence[Claim], requests: Sequence[ForgetRequest], later: Sequence[ForgetRequest]
) -> frozenset[str]:
    """Their ids. `turns`: context and window, in the order said. `claims`: all of them, also those that were refused.

    `requests`: made in these turns, also in those that were filled in; `later`: `lasting` ones, made since.
    """
    if not (requests or later):
        return frozenset()
    withheld = {claim.evidence.turn_id for claim in split_claims(claims, requests, turns).withheld}
    withheld |= {claim.evidence.turn_id for claim in claims if is_forgotten_later(later, claim)}
    withheld |= {request.turn.id for request in requests}
    place = {turn.id: index for index, turn in enumerate(turns)}
    for request in requests:
        previous = turn_meant(request, turns)
        withheld |= {previous.id} if previous is not None else set()
        withheld |= _meant(request, turns[: place.get(request.turn.id, 0)])
    for request in later:
        withheld |= _meant(request, [turn for turn in turns if turn.at <= request.turn.at])
    return frozenset(withheld)


def _meant(request: ForgetRequest, turns: Iterable[Turn]) -> set[str]:
    """Of the turns before a request those that it means as a whole, or by their words."""
    project_id = request.turn.scope.project_id
    of_project = [turn for turn in turns if project_id in ("", turn.scope.project_id)]
    if request.reach is ForgetReach.EVERYTHING:
        return {turn.id for turn in of_project}
    says = says_topic(request)
    return {turn.id for turn in of_project if any(map(says, own_messages(turn)))}


__all__ = ["withheld_turns"]
