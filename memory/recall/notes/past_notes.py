"""Notes of earlier requests, put back where they stood, so that the prompt's prefix stays the same from turn to turn.

A chat client resends its own messages and knows nothing of our notes. If a note stood before message 4 in one request
and nowhere in the next, the model server would have to read everything after message 4 again: its prefix cache is
worth more than most memories. So each note is kept under a key that only that very conversation, up to that very
message, can have: the hash chain of the client's own messages within the user's scope. A regenerated answer has the
same key, an edited branch has others.

The way of one request: `note_keys` → `NoteBook.find` → `carried_notes` → (search, unless `is_settled`) → `plan` →
`NoteBook.keep`. Pure: keys in, notes out. A note that was placed is never reworded here, only put back or replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.chat.completions import ChatRequest, message_bytes
from memory.model import CHAT_BYTES_MAX, Candidate, Conversation, Memory, Note, PastNote, Placement, Role, Scope
from memory.ports import Tokens
from memory.recall.notes.injection import NOTE_FRAME, line_tokens, note_label, render_note

# Of one conversation: a long chat must not become a list of memories. What we promise is 2,000; we count in WordPiece,
# and a tokenizer that takes dates and numbers digit by digit counts up to a quarter more.
ALL_NOTES_TOKENS_MAX = 1_600
LATE_NOTE_TOKENS_MIN = 160  # the frame and two or three memories: with less than that a note says nothing
KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class Carried:
    """The notes that a conversation carries already, by the index of the client's message that each stands before."""

    notes: Mapping[int, PastNote]
    newest: int | None  # index of the last user message, where a new note would stand; None where no user speaks
    key: str  # of that message; "" where the note book is not used
    is_settled: bool  # the question was asked and searched for before: what stands there stays, and nothing is added
    at_server: tuple[PastNote, ...] = ()  # of requests whose messages the server holds, oldest first

    def earlier(self) -> tuple[PastNote, ...]:
        """All notes of the conversation but the one at the newest user message, oldest first."""
        return (*self.at_server, *(self.notes[index] for index in sorted(self.notes) if index != self.newest))

    def held_earlier(self) -> tuple[str, ...]:
        """Memories in notes before earlier messages, oldest first: they were told, and need no second telling."""
        return tuple(dict.fromkeys(memory_id for note in self.earlier() for memory_id in note.memory_ids))

    def room(self, *, budget: int, tokens: Tokens) -> int:
        """Tokens for the lines of a new note, which has `budget` and its share of what all notes together may cost.

        After the first note, a new one gets half of what is left: so that also late questions find room.
        """
        earlier = [note.tokens for note in self.earlier()]
        left = ALL_NOTES_TOKENS_MAX - sum(earlier)
        share = min(left, max(left // 2, LATE_NOTE_TOKENS_MIN)) if earlier else left
        return max(0, min(budget, share) - tokens(NOTE_FRAME))


@dataclass(frozen=True, slots=True)
class NotePlan:
    """The notes of this request by the index of the message that each stands before. `fresh` is to be kept.

    `at_server`: those of earlier requests whose messages the server holds, and the notes inside them; instructions it
    does not hold.
    """

    notes: Mapping[int, PastNote]
    fresh: PastNote | None = None
    at_server: tuple[PastNote, ...] = ()

    def placed(self, placement: Placement) -> tuple[Note, ...]:
        """Each before its message; or, for templates that allow but one system message, merged into it in order."""
        match placement:
            case Placement.OFF:
                return ()
            case Placement.SYSTEM:
                return tuple(Note(note.text) for note in self._in_order())
            case Placement.BEFORE_LAST_USER:
                return tuple(Note(self.notes[index].text, index) for index in sorted(self.notes))

    def memory_ids(self) -> tuple[str, ...]:
        """All memories in the prompt's notes, in their order."""
        return tuple(one for note in self._in_order() for one in note.memory_ids)

    def _in_order(self) -> tuple[PastNote, ...]:
        return (*self.at_server, *(self.notes[index] for index in sorted(self.notes)))


def note_keys(scope: Scope, request: ChatRequest) -> dict[int, str]:
    """The key of each user message by its index: this conversation, up to and with that message.

    None without a conversation, and for bodies that are too large. Costs some 4 ms for each MiB.
    """
    if request.conversation is None or len(request.body) > CHAT_BYTES_MAX:
        return {}
    chain = hashlib.blake2b(
        "\x1f".join((scope.user_id, scope.project_id, scope.agent_id)).encode(), digest_size=KEY_BYTES
    )
    keys: dict[int, str] = {}
    for index, sent in enumerate(message_bytes(request)):
        chain.update(len(sent).to_bytes(8, "big"))
        chain.update(sent)
        if request.conversation.messages[index].role == Role.USER:
            keys[index] = chain.hexdigest()
    return keys


def carried_notes(
    conversation: Conversation, keys: Mapping[int, str], past: Mapping[str, PastNote], *, at_server: Sequence[str] = ()
) -> Carried:
    """Past notes at their places. `keys` as `note_keys` gave them, `past` what the note book has of all keys.

    `at_server`: keys of notes in what the server holds of this conversation, oldest first.

    A tool's result, or an answer to be continued, belongs to a question that was asked before: it is settled, so that
    each call of a tool loop reads what the one before it read. A question sent again on its own (an answer regenerated,
    or the same opening of another chat) is searched again, for it may be days later.
    """
    messages = conversation.messages
    held = tuple(past[key] for key in at_server if key in past)
    newest = next((index for index in reversed(range(len(messages))) if messages[index].role == Role.USER), None)
    notes = {index: past[key] for index, key in keys.items() if key in past}
    if newest is None:
        return Carried(notes, None, "", is_settled=True, at_server=held)
    later = messages[newest + 1 :]
    is_settled = any(message.is_tool_traffic for message in later) or bool(later and newest in notes)
    return Carried(notes, newest, keys.get(newest, ""), is_settled, held)


def plan(carried: Carried, found: Sequence[Candidate], *, budget: int, tokens: Tokens, now: float) -> NotePlan:
    """The notes of this request: those carried, and one that says what is new among what was `found`, best first.

    With nothing found: what is carried, as it is. Where the newest question has a note that holds all of them, that one
    stays byte for byte, else the new one takes its place. Never more tokens than `Carried.room` has.
    """
    if carried.newest is None:
        return NotePlan(carried.notes, at_server=carried.at_server)
    told = frozenset(carried.held_earlier())
    unheard = [candidate for candidate in found if candidate.memory.id not in told]
    chosen, spent = _fitting(unheard, carried.room(budget=budget, tokens=tokens), tokens=tokens, now=now)
    standing = carried.notes.get(carried.newest)
    if all(standing is not None and memory.id in standing.memory_ids for memory in chosen):
        return NotePlan(carried.notes, at_server=carried.at_server)
    text = render_note(chosen, now=now)
    fresh = PastNote(text, tuple(memory.id for memory in chosen), tokens(NOTE_FRAME) + spent)
    return NotePlan({**carried.notes, carried.newest: fresh}, fresh, carried.at_server)


def placement_after_refusal(placement: Placement) -> Placement:
    """Where notes go for a model whose template refused them there: into the one system message, or else nowhere."""
    return Placement.SYSTEM if placement is Placement.BEFORE_LAST_USER else Placement.OFF


def _fitting(found: Sequence[Candidate], room: int, *, tokens: Tokens, now: float) -> tuple[list[Memory], int]:
    """As many as fit, best first, and what their lines cost; one that is too long makes way for the next."""
    chosen: list[Memory] = []
    spent = 0
    for candidate in found:
        cost = line_tokens(candidate, tokens=tokens, label=note_label(candidate.memory, now=now))
        if spent + cost <= room:
            chosen.append(candidate.memory)
            spent += cost
    return chosen, spent
