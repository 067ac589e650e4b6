"""Decides whether the user's profile goes along with a question, and reads it.

It takes microseconds, and never fails a request: without profiles, the note is as it would be.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from memory.chat.completions import ChatRequest
from memory.errors import Unavailable
from memory.model import Scope
from memory.ports import Profiles, Tokens
from memory.recall.notes.profile_notes import ProfileUse, holds_profile, without_profiles
from memory.recall.trace import RecallSettings, Trace
from memory.runtime.metrics import Metrics
from memory.service.profile_layout import profile_text


class ProfileOpening:
    """One per process."""

    def __init__(self, profiles: Profiles, *, tokens: Tokens, metrics: Metrics, settings: RecallSettings) -> None:
        self._profiles = profiles
        self._tokens = tokens
        self._metrics = metrics
        self._use = settings.profile

    async def read(self, scope: Scope, request: ChatRequest, trace: Trace) -> None:
        """Set `trace.profile` if one goes along; for a request that wants none, take it out of the carried notes."""
        if self._use is None or request.options.profile is False:
            trace.carried = replace(trace.carried, notes=without_profiles(trace.carried.notes))
            return
        if request.options.memory_types or not self._goes_along(trace, is_wanted=request.options.profile is True):
            return
        with trace.timed("profile", self._metrics), suppress(Unavailable):
            found = await self._profiles.get(scope.user_id, {"", scope.project_id})
            of_project = found.get(scope.project_id) if scope.project_id else None
            trace.profile = profile_text(found.get(""), of_project, tokens=self._tokens)

    def _goes_along(self, trace: Trace, *, is_wanted: bool) -> bool:
        """`is_wanted`: the request asks for a profile, so that it needs no memory beside it."""
        carried = trace.carried
        if not trace.are_notes_reviewed or carried.newest is None or carried.is_settled:
            return False
        if holds_profile(carried.earlier()):
            return False
        match self._use:
            case ProfileUse.ALWAYS:
                return True
            case ProfileUse.WITH_MEMORIES if not is_wanted:
                return bool(trace.selection.candidates)
            case _:
                return trace.decision is not None and trace.decision.search


__all__ = ["ProfileOpening"]
