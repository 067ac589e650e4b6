"""What is stored of a conversation: its user's choice, its notes, where its model accepts notes, its beginning's state.

It never fails a request, which continues without. Users of whom that cannot be known in time get no memory.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from memory.chat.completions import ChatRequest
from memory.errors import Unavailable
from memory.model import Placement
from memory.ports import ChatState, ChatStateQuery, ChatStates, CompactedStates, ModelWindows
from memory.recall.compacted import find_state, keys_after, room_beside_state
from memory.recall.notes.past_notes import CarriedNotes, carried_notes, room_for_notes
from memory.recall.notes.template_compatibility import BY_CAUTION
from memory.recall.project_access import ReadableProjects
from memory.recall.stages import AskedChat, Reached, RecallSettings, Review
from memory.runtime.offload import run_by_weight

READ_SECONDS_MAX = 0.05  # of the request's deadline; usually some microseconds, on PostgreSQL a round trip
RETURN_SECONDS_MAX = 0.3  # since a read failed first: a server that was killed is back by then, if it comes back soon
PAUSE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class StoredState:
    state: ChatState | None  # None if it could not be read
    waited: float = 0.0  # seconds, for a server that starts again: a request's deadline does not include them


class StateReader:
    """Reads what is stored for a chat, once and in time. One per process."""

    def __init__(self, states: ChatStates, projects: ReadableProjects) -> None:
        self._states = states
        self._projects = projects
        self._unknown_since: float | None = None  # the loop's time; None while reads succeed

    async def read(self, query: ChatStateQuery) -> StoredState:
        """A server that starts again is waited for; one that stays away delays nobody else: the last state does."""
        state = await self._in_time(query)
        if state is not None:
            return StoredState(state)
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        ends_at = (self._unknown_since or began_at) + RETURN_SECONDS_MAX
        while state is None and loop.time() < ends_at:
            await asyncio.sleep(PAUSE_SECONDS)
            state = await self._in_time(query)
        return StoredState(state or self._states.last_known(query), loop.time() - began_at)

    async def _in_time(self, query: ChatStateQuery) -> ChatState | None:
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                stored = await self._states.read(query)
                stored = await self._projects.readable_notes(query.user_id, stored)
        except (Unavailable, TimeoutError):
            if self._unknown_since is None:
                self._unknown_since = asyncio.get_running_loop().time()
            return None
        self._unknown_since = None
        return stored


class ReviewStage:
    """One per process."""

    def __init__(self, states: CompactedStates, windows: ModelWindows, settings: RecallSettings) -> None:
        self._states = states
        self._windows = windows
        self._settings = settings

    async def of(self, asked: AskedChat, reached: Reached) -> Review:
        """Looked up once per request."""
        review = reached.latest(Review) or asked.unreviewed
        if review.is_complete:
            return review
        with reached.timed("notes"), suppress(Unavailable):
            if asked.request.options.placement is None:
                placement = _possible_placement(asked.stored.placement, asked.request, review.placement)
                review = replace(review, placement=placement)
            if self._is_compacted(asked, review.placement):
                found = await find_state(self._states, asked.scope, asked.request, asked.keys, asked_at=asked.began_at)
                review = replace(review, compaction=found)
            kept, link = keys_after(asked.keys, review.compaction.state), asked.stored.link
            at_server = link.note_keys if link is not None else ()
            carried = carried_notes(asked.conversation, kept, asked.stored.notes, at_server=at_server)
            review = reached.add(replace(review, carried=carried))
        return reached.add(replace(review, carried=await self._bounded(asked, review), is_complete=True))

    def _is_compacted(self, asked: AskedChat, placement: Placement) -> bool:
        """Whether this history is to be replaced, is recorded and sent in full, and may have a system message."""
        options = asked.request.options
        is_wanted = self._settings.compacts if options.compact is None else options.compact
        is_possible = placement is not Placement.OFF and not asked.request.chain.held_under
        return is_wanted and options.auto_store and is_possible and asked.stored.placement is not Placement.OFF

    async def _bounded(self, asked: AskedChat, review: Review) -> CarriedNotes:
        """The notes that the size aimed at for a compacted prompt, and the model's window, leave room for."""
        carried, state, settings = review.carried, review.compaction.state, self._settings
        if state is not None:
            room = room_beside_state(asked.conversation, state, tokens_max=settings.compacted_tokens)
            carried = replace(carried, tokens_max=min(carried.tokens_max, room))
        window = self._windows.glance(asked.conversation.model)
        if window is None:
            return carried
        reserve, request = settings.answer_reserve_tokens, asked.request
        counting = partial(room_for_notes, request, window, answer_reserve=reserve, state=state)
        left = await run_by_weight(counting, is_heavy=request.is_heavy)
        return carried if left is None else carried.within(left)


def _possible_placement(learnt: Placement | None, request: ChatRequest, wanted: Placement) -> Placement:
    """The nearest to `wanted` that was `learnt` to be accepted; inside the user's message, notes always are."""
    if request.shape.is_bound_by_templates:
        return max(learnt or wanted, wanted, key=BY_CAUTION.index)
    return Placement.BEFORE_LAST_USER if wanted is Placement.SYSTEM and learnt is Placement.OFF else wanted
