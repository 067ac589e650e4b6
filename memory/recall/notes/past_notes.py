"""Puts the notes of earlier requests back at the same position, so that the prompt's prefix stays identical.

A chat client resends its own messages and does not know our notes. If a note stood before message 4 in one request and
is missing in the next, the model server has to process everything after message 4 again, and its prefix cache is worth
more than most memories. Each note is therefore stored under a key that identifies the conversation up to that message:
the hash chain of the client's own messages within the user's scope. A regenerated answer has the same key, an edited
branch has another one.

Order of one request: `note_keys` → `ChatStates.read` → `carried_notes` → (search, unless `is_settled`) → `plan_notes` →
`NoteBook.keep`. Pure. A note that was placed once is never reworded: it is put back or replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory.chat.completions import ChatRequest
from memory.chat.token_estimate import answer_limit, estimated_prompt
from memory.model import (
    CHAT_BYTES_MAX,
    Candidate,
    CompactedState,
    Conversation,
    Memory,
    ModelWindow,
    Note,
    PastNote,
    Placement,
    ProfileText,
    Role,
    Scope,
)
from memory.ports import Tokens
from memory.recall.notes.injection import NOTE_FRAME, line_tokens, newest_first, note_label, render_note
from memory.recall.notes.profile_notes import holds_profile, one_note

# We count in the packaged encoder's tokens; a tokenizer that splits dates and numbers into digits counts up to so many.
NOTE_TOKENS_MARGIN = 1.25
ALL_NOTES_TOKENS_MAX = 1_600  # of a conversation: less than the 2,000 that are promised, by that margin
ROOM_MAX = 4_000  # more than all notes ever take: of a window with so much room nothing has to be computed
LATE_NOTE_TOKENS_MIN = 160  # the frame and two or three memories: a smaller note is not worth placing
KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class CarriedNotes:
    """The notes that a conversation already carries, by the index of the client's message that each stands before."""

    notes: Mapping[int, PastNote]
    newest: int | None  # index of the last user message, where a new note would be placed; None without a user message
    key: str  # of that message; "" where the note book is not used
    is_settled: bool  # this question was searched for in an earlier request: its note stays and nothing is added
    at_server: tuple[PastNote, ...] = ()  # of requests whose messages the server stores, oldest first
    tokens_max: int = ALL_NOTES_TOKENS_MAX  # of all notes together; less where the model's window has less room
    keys: Mapping[int, str] = field(default_factory=dict)  # of the client's messages, by index

    def within(self, tokens_max: int) -> CarriedNotes:
        """With at most so many tokens, those at the server included: the newest go first, so that the prefix stays."""
        kept, spent = {}, sum(note.tokens for note in self.at_server)
        for index in sorted(self.notes):
            spent += self.notes[index].tokens
            if spent > tokens_max:
                break
            kept[index] = self.notes[index]
        return replace(self, notes=kept, tokens_max=min(self.tokens_max, max(0, tokens_max)))

    def earlier(self) -> tuple[PastNote, ...]:
        """All notes of the conversation except the one at the newest user message, oldest first."""
        return (*self.at_server, *(self.notes[index] for index in sorted(self.notes) if index != self.newest))

    def held_earlier(self) -> tuple[str, ...]:
        """Ids of the memories in notes before earlier messages, oldest note first; they need not be injected again."""
        return tuple(dict.fromkeys(memory_id for note in self.earlier() for memory_id in note.memory_ids))

    def room(self, *, budget: int, tokens: Tokens, reserved: int = 0) -> int:
        """Tokens for the lines of a new note beside `reserved` ones: at most `budget`, and its share of all notes'.

        After the first note, each new one gets half of what is left, so that late questions have room as well.
        """
        earlier = [note.tokens for note in self.earlier()]
        left = self.tokens_max - sum(earlier) - reserved
        share = min(left, max(left // 2, LATE_NOTE_TOKENS_MIN)) if earlier else left
        return max(0, min(budget, share) - tokens(NOTE_FRAME))


@dataclass(frozen=True, slots=True)
class NotePlan:
    notes: Mapping[int, PastNote]  # by the index of the message that each stands before
    fresh: PastNote | None = None  # the new one, to be kept
    # Of earlier requests whose messages the server stores with the notes inside them; it does not store instructions
    at_server: tuple[PastNote, ...] = ()
    profile: ProfileText | None = None  # what opens `fresh`
    found_ids: tuple[str, ...] = ()  # memories in `fresh` that were found for the question, in the profile or after it
    answer_ids: tuple[str, ...] = ()  # what was said in past conversations, at its end
    summary_ids: tuple[str, ...] = ()

    def placed(self, placement: Placement) -> tuple[Note, ...]:
        """Each before its message, or all merged into one, for templates that allow only one system message."""
        match placement:
            case Placement.OFF:
                return ()
            case Placement.SYSTEM:
                return tuple(Note(note.text) for note in self._in_order())
            case Placement.BEFORE_LAST_USER:
                return tuple(Note(self.notes[index].text, index) for index in sorted(self.notes))

    @property
    def reason(self) -> str:
        """Why a note goes along, for metrics."""
        if self.fresh is None:
            return "put_back"
        said = (("found", self.found_ids), ("answer", self.answer_ids), ("summary", self.summary_ids))
        if found := next((reason for reason, ids in said if ids), ""):
            return found
        if self.profile is None:
            return "nothing_said"
        return "profile" if holds_profile([self.fresh]) else "wishes"

    def memory_ids(self) -> tuple[str, ...]:
        """Ids of all memories in the prompt's notes, in the order of the notes."""
        return tuple(one for note in self._in_order() for one in note.memory_ids)

    def _in_order(self) -> tuple[PastNote, ...]:
        return (*self.at_server, *(self.notes[index] for index in sorted(self.notes)))


def note_keys(scope: Scope, request: ChatRequest) -> dict[int, str]:
    """The key of each user message by its index, over the conversation up to it; none of a body past `CHAT_BYTES_MAX`.

    About 4 ms per MiB.
    """
    if request.conversation is None or len(request.body) > CHAT_BYTES_MAX:
        return {}
    owner = "\x1f".join((scope.user_id, scope.project_id, scope.agent_id))
    chain = hashlib.blake2b(owner.encode(), digest_size=KEY_BYTES)
    keys: dict[int, str] = {}
    for index, sent in enumerate(request.shape.message_bytes(request)):
        chain.update(len(sent).to_bytes(8, "big"))
        chain.update(sent)
        if request.conversation.messages[index].role == Role.USER:
            keys[index] = chain.hexdigest()
    return keys


def carried_notes(
    conversation: Conversation, keys: Mapping[int, str], past: Mapping[str, PastNote], *, at_server: Sequence[str] = ()
) -> CarriedNotes:
    """`past`: what the note book has for the `keys`, and for those `at_server`: in what that stores, oldest first.

    A request that ends with a tool result, or with an answer to be continued, belongs to an earlier question: it is
    settled, so that every call of a tool loop sees the same note. A question that is sent again on its own (a
    regenerated answer, or the same opening of another chat) is searched again, since days may have passed.
    """
    messages = conversation.messages
    held = tuple(past[key] for key in at_server if key in past)
    newest = next((index for index in reversed(range(len(messages))) if messages[index].role == Role.USER), None)
    notes = {index: past[key] for index, key in keys.items() if key in past}
    if newest is None:
        return CarriedNotes(notes, None, "", is_settled=True, at_server=held, keys=keys)
    later = messages[newest + 1 :]
    is_settled = any(message.is_tool_traffic for message in later) or bool(later and newest in notes)
    return CarriedNotes(notes, newest, keys.get(newest, ""), is_settled, held, keys=keys)


def plan_notes(
    carried: CarriedNotes,
    found: Sequence[Candidate],
    *,
    budget: int,
    tokens: Tokens,
    now: float,
    profile: ProfileText | None = None,
) -> NotePlan:
    """The carried notes, and a new one with the memories in `found`, best first, that they do not hold.

    If the newest question already has a note that holds all of `found`, that note stays byte for byte; otherwise the
    new one replaces it. It takes at most `budget` and `CarriedNotes.room` tokens. `profile`: opens the new note, which
    does not repeat its memories; left out if budget, conversation or window have no room for it.
    """
    if carried.newest is None:
        return NotePlan(carried.notes, at_server=carried.at_server)
    if profile is not None:
        left = carried.tokens_max - sum(note.tokens for note in carried.earlier())
        profile = profile if profile.tokens <= min(left, budget) else None
    in_notes = frozenset((*carried.held_earlier(), *(profile.memory_ids if profile is not None else ())))
    new = [candidate for candidate in found if candidate.memory.id not in in_notes]
    reserved = profile.tokens if profile is not None else 0
    room = carried.room(budget=budget - reserved, tokens=tokens, reserved=reserved)
    chosen, spent = _fitting(new, room, tokens=tokens, now=now)
    if _is_held(carried.notes.get(carried.newest), chosen, found, profile):
        return NotePlan(carried.notes, at_server=carried.at_server)
    of_question = None
    if chosen:
        text, ids = render_note(chosen, now=now), tuple(memory.id for memory in chosen)
        of_question = PastNote(text, ids, tokens(NOTE_FRAME) + spent)
    fresh = one_note(profile, of_question)
    in_fresh = frozenset(fresh.memory_ids)
    found_ids = tuple(candidate.memory.id for candidate in found if candidate.memory.id in in_fresh)
    return NotePlan({**carried.notes, carried.newest: fresh}, fresh, carried.at_server, profile, found_ids)


def _is_held(
    standing: PastNote | None, chosen: Sequence[Memory], found: Sequence[Candidate], profile: ProfileText | None
) -> bool:
    """Whether the note that the question already has, or no note at all, says all there is to say."""
    if standing is None:
        return profile is None and not chosen
    is_opened = not found or profile is None or standing.text.startswith(profile.text)
    return is_opened and all(memory.id in standing.memory_ids for memory in chosen)


def _fitting(found: Sequence[Candidate], room: int, *, tokens: Tokens, now: float) -> tuple[list[Memory], int]:
    """As many as fit, in the order of a note, and the tokens of their lines; one that is too long is skipped."""
    chosen: list[Memory] = []
    spent = 0
    for candidate in found:
        cost = line_tokens(candidate, tokens=tokens, label=note_label(candidate.memory, now=now))
        if spent + cost <= room:
            chosen.append(candidate.memory)
            spent += cost
    return newest_first(chosen), spent


def room_for_notes(
    request: ChatRequest, window: ModelWindow, *, answer_reserve: int, state: CompactedState | None = None
) -> int | None:
    """Tokens for all notes together, as we count them: what the client asks for comes first. None: as many as wanted.

    `answer_reserve`: kept for the answer of a request that sets no limit. `state`: what replaces the beginning.
    """
    limit = answer_limit(request)
    available = window.tokens - (answer_reserve if limit is None else limit)
    if len(request.body) + ROOM_MAX * NOTE_TOKENS_MARGIN <= available:  # no text has more tokens than bytes
        return None
    begin, added = (state.cut, state.tokens) if state is not None else (0, 0)
    prompt = estimated_prompt(request, begin=begin) + added
    left = (available - prompt * window.per_estimate) / NOTE_TOKENS_MARGIN
    return None if left >= ROOM_MAX else max(0, int(left))
