"""Decides whether the user's wishes and their profile go along with a question.

Wishes about answers go along with every chat, also one for which nothing is searched; the profile as it is set.
"""

from __future__ import annotations

from dataclasses import replace

from memory.chat.completions import ChatRequest
from memory.model import ProfileText, Scope
from memory.ports import Tokens
from memory.recall.notes.profile_notes import ProfileUse, holds_profile, joined, wishes_in, without_profiles
from memory.recall.trace import RecallSettings, Trace
from memory.runtime.metrics import Metrics
from memory.service.profile_layout import profile_text, wishes_text


class ProfileOpening:
    """One per process."""

    def __init__(self, *, tokens: Tokens, metrics: Metrics, settings: RecallSettings) -> None:
        self._tokens = tokens
        self._metrics = metrics
        self._use = settings.profile

    def wanted_of(self, scope: Scope, request: ChatRequest) -> frozenset[str]:
        """The projects whose profiles may go along; "" is the user's own."""
        is_wanted = self._use is not None and request.options.profile is not False
        return frozenset(("", scope.project_id)) if is_wanted else frozenset()

    def choose(self, scope: Scope, request: ChatRequest, trace: Trace, *, budget: int) -> None:
        """Set `trace.profile` to the wishes and the profile that go along, as far as `budget` tokens and the
        conversation leave room; for a request that wants none, take them out of the carried notes.
        """
        if not self.wanted_of(scope, request):
            trace.carried = replace(trace.carried, notes=without_profiles(trace.carried.notes))
            return
        carried = trace.carried
        if not trace.are_notes_reviewed or carried.newest is None or carried.is_settled:
            return
        found = trace.stored.profiles
        with trace.timed("profile", self._metrics):
            own, of_project = found.get(""), found.get(scope.project_id) if scope.project_id else None
            earlier = carried.earlier()
            wishes = wishes_text(own, of_project, tokens=self._tokens)
            if wishes is not None and wishes.text == wishes_in(earlier):
                wishes = None
            goes_along = not request.options.memory_types and not holds_profile(earlier)
            profile = None
            if goes_along and self._goes_along(trace, is_wanted=request.options.profile is True):
                profile = profile_text(own, of_project, tokens=self._tokens)
            trace.profile = _fitting(wishes, profile, min(budget, carried.tokens_max - sum(n.tokens for n in earlier)))

    def _goes_along(self, trace: Trace, *, is_wanted: bool) -> bool:
        """`is_wanted`: the request asks for a profile, so that it needs no memory beside it."""
        match self._use:
            case ProfileUse.ALWAYS:
                return True
            case ProfileUse.WITH_MEMORIES if not is_wanted:
                return bool(trace.selection.candidates)
            case _:
                return trace.decision is not None and trace.decision.search


def _fitting(wishes: ProfileText | None, profile: ProfileText | None, room: int) -> ProfileText | None:
    both = joined(wishes, profile)
    if both is None or both.tokens <= room:
        return both
    return wishes if wishes is not None and wishes.tokens <= room else None
