"""A model server's prefix cache that is counted instead of run, and a chat of thirty turns that goes through it.

The cache is vLLM's: blocks of 16 tokens, each known by all that stands before it, and it keeps everything, the
generated answers too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from memory.adapters.models.packaged_encoder import sentence_pieces
from memory.adapters.models.sentence_pieces import sentence_piece_tokens
from memory.model import Memory
from memory.settings.loader import from_process

BLOCK_TOKENS = 16
NOW = 1_765_800_000.0
BEGIN, END = -1, -2  # the template's marks: one token each, which no text can spell


_pieces = sentence_pieces(from_process(None, {}).models_path)
count = sentence_piece_tokens(_pieces)


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
    inside = [
        Token(token, not any(start <= first < end for start, end in ours))
        for token, (first, _) in zip(*_pieces.placed(content), strict=True)
    ]
    return [*begin, *inside, Token(END, is_client_s)]


def _text(text: str, *, is_client_s: bool = True) -> list[Token]:
    return [Token(one, is_client_s) for one in _pieces.ids(text)]


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
