"""Which turns of a window leave nothing behind but memories: no raw words, and no part in a summary. Pure.

Of such a turn something is withheld, whether or not it would have been learnt: it makes a request to forget something,
or such a request, made in the window or since, means something that it says. What else it says is learnt all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from memory.learn.closeness import Closeness
from memory.learn.forgetting import FROM_NOW, ForgetRequest, names_only_a_kind, says_topic, turn_meant, withheld_claims
from memory.learn.gate import Dropped, Refusal
from memory.learn.reading.units import own_messages
from memory.model import Claim, Turn
from memory.ports import OrderReach

# Not what was too short or not sure: that is said in passing, and may be told again.
REFUSED = frozenset({Refusal.SECRET, Refusal.PLANTED, Refusal.RATE})


def refused_turns(dropped: Iterable[Dropped]) -> frozenset[str]:
    """The ids of turns of which the gate refused something that must not be told in another way either."""
    return frozenset(one.claim.evidence.turn_id for one in dropped if one.reason in REFUSED)


def withheld_turns(
    turns: Sequence[Turn],
    claims: Sequence[Claim],
    requests: Sequence[ForgetRequest],
    later: Sequence[ForgetRequest],
    close: Closeness,
) -> frozenset[str]:
    """Their ids. `turns`: context and window, in the order said. `claims`: all of the window's, also refused ones.

    `requests`: made in these turns, also in those that were filled in; `later`: `lasting` ones of others.
    """
    if not (requests or later):
        return frozenset()
    withheld = {claim.evidence.turn_id for claim in withheld_claims(claims, requests, turns, close, later)}
    asked = [*(request.turn for request in requests), *(turn_meant(request, turns) for request in requests)]
    withheld |= {turn.id for turn in asked if turn is not None}
    claimed = {claim.evidence.turn_id for claim in claims}
    place = {turn.id: index for index, turn in enumerate(turns)}
    for request in requests:
        index = place.get(request.turn.id, 0)
        withheld |= _meant(request, turns[:index], turns[index:], claimed)
    for request in later:
        before = [turn for turn in turns if turn.at <= request.turn.at]
        withheld |= _meant(request, before, [turn for turn in turns if turn.at > request.turn.at], claimed)
    return frozenset(withheld)


def _meant(request: ForgetRequest, before: Sequence[Turn], since: Sequence[Turn], claimed: Collection[str]) -> set[str]:
    """Of the turns before a request and since those that it means as a whole, or by their words."""
    if request.reach in FROM_NOW:
        reached = since if request.reach is OrderReach.STOP else (*before, *since)
        return {turn.id for turn in reached if turn.scope.session_id == request.turn.scope.session_id}
    project_id = request.turn.scope.project_id
    of_project = [turn for turn in before if project_id in ("", turn.scope.project_id)]
    if request.reach is OrderReach.EVERYTHING:
        return {turn.id for turn in of_project}
    if names_only_a_kind(request):
        return {turn.id for turn in of_project if turn.id not in claimed}
    says = says_topic(request)
    return {turn.id for turn in of_project if any(map(says, own_messages(turn)))}
