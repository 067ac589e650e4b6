"""What became of the memories that a conversation was told already: which still hold, and what took the others' place.

A note that was placed is never reworded, so a memory that was superseded since goes on standing in the prompt. The
newest note must tell the model better, whether or not the question would find that. Only ids that earlier notes of this
very conversation hold are looked up here; what the scope may see is the ranking's business. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory.language.remembering import remembered
from memory.model import Memory, MemoryStatus
from memory.recall.corpus import Corpus
from memory.recall.layout import SUCCESSIONS_MAX
from memory.recall.lexical import fold

_WORD = re.compile(r"[-+$€£¥#@]?\w+(?:[.,:/-]\w+)*[-+#%°]*")  # signs tell apart: O+ and O-, C and C#, $50 and €50
# Words without which a statement says the same. Who else it is about, when it was, and any "not" are none of them.
_FILLERS = frozenset(
    "a an the really very just also so der die das ein eine el la un una 了 "
    "i m my am is are s user users ich bin mein meine ist nutzer nutzers yo soy mi mis es usuario del de".split()
)
_FILLERS_UNSPACED = re.compile("用户|我的?|的|了")


@dataclass(frozen=True, slots=True)
class Told:
    """Of what was told: `holding` still holds, `corrections` are what holds instead of the rest, in the order told."""

    holding: tuple[Memory, ...] = ()
    corrections: tuple[Memory, ...] = ()


def look_back(corpus: Corpus, told: Sequence[str]) -> Told:
    """`told`: ids in earlier notes, oldest note first. What was deleted, or is told already, needs no correction."""
    known = [memory for memory in map(corpus.memory, told) if memory is not None]
    holding = [memory for memory in known if memory.status is MemoryStatus.ACTIVE]
    heard = set(told)
    corrections: dict[str, Memory] = {}
    for memory in known:
        if memory.status is not MemoryStatus.SUPERSEDED:
            continue
        successor = _successor(corpus, memory)
        is_news = successor is not None and statement(successor.content) != statement(memory.content)
        if successor is not None and is_news and successor.id not in heard:
            corrections[successor.id] = successor
    return Told(tuple(holding), tuple(corrections.values()))


@remembered  # what is told is compared again in every request
def statement(content: str) -> tuple[str, ...]:
    """Equal for texts that say the same in the same words; a "not", a name or a number keeps two apart."""
    folded = fold(content)
    words = tuple(w for w in _WORD.findall(_FILLERS_UNSPACED.sub("", folded)) if w not in _FILLERS)
    return words or (folded.strip(),)


def _successor(corpus: Corpus, memory: Memory) -> Memory | None:
    """What holds now in its place; None where that was deleted, put away, or never was."""
    for _ in range(SUCCESSIONS_MAX):
        following = corpus.memory(memory.superseded_by)
        if following is None or following.status is MemoryStatus.ACTIVE:
            return following
        memory = following
    return None


__all__ = ["Told", "look_back", "statement"]
