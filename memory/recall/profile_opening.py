"""Decides whether the user's wishes and their profile go along with a question.

Wishes about answers go along with every chat, also one for which nothing is searched; the profile as it is set. Pure.
"""

from __future__ import annotations

from memory.chat.completions import ChatRequest
from memory.model import ProfileText, Scope
from memory.ports import Tokens
from memory.recall.notes.profile_notes import ProfileUse, holds_profile, joined, wishes_in
from memory.recall.signals.search_decision import Decision
from memory.recall.stages import AskedChat, Review
from memory.service.profile_layout import profile_text, wishes_text


def wanted_profiles(use: ProfileUse | None, scope: Scope, request: ChatRequest) -> frozenset[str]:
    """The projects whose profiles may go along; "" is the user's own."""
    is_wanted = use is not None and request.options.profile is not False
    return frozenset(("", scope.project_id)) if is_wanted else frozenset()


def opening_of(
    asked: AskedChat, review: Review, *, with_profile: bool, budget: int, tokens: Tokens
) -> ProfileText | None:
    """The wishes, and `with_profile` the profile, as far as `budget` tokens and the conversation leave room."""
    found, carried, request = asked.stored.profiles, review.carried, asked.request
    own, of_project = found.get(""), found.get(asked.scope.project_id) if asked.scope.project_id else None
    earlier = carried.earlier()
    wishes = wishes_text(own, of_project, tokens=tokens)
    if wishes is not None and wishes.text == wishes_in(earlier):
        wishes = None
    is_due = with_profile and not request.options.memory_types and not holds_profile(earlier)
    profile = profile_text(own, of_project, tokens=tokens) if is_due else None
    room = min(budget, carried.tokens_max - sum(note.tokens for note in earlier))
    both = joined(wishes, profile)
    if both is None or both.tokens <= room:
        return both
    return wishes if wishes is not None and wishes.tokens <= room else None


def goes_along(use: ProfileUse | None, asked: AskedChat, decision: Decision | None, *, has_found: bool) -> bool:
    """Whether the profile does. A request that asks for one needs no memory beside it."""
    match use:
        case ProfileUse.ALWAYS:
            return True
        case ProfileUse.WITH_MEMORIES if asked.request.options.profile is not True:
            return has_found
        case _:
            return decision is not None and decision.search
