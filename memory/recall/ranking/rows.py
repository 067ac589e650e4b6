"""What ranking derives from each memory once, stored in columns: terms, concepts, flags, names and numbers.

Encoding a memory takes 50 µs, so a thousand would cost a chat its deadline: the result is stored in the user's snapshot
with the memories. Whatever changes the encoding changes the source of this module or of one that it imports, by which
`snapshot_codec` recognises outdated snapshots. Ranking accesses only the few memories that it returns, so those of a
snapshot stay bytes until they are accessed: decoding 5,000 at once would occupy the interpreter for 15 ms. Pure.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from memory.chat.plain_lines import on_one_line
from memory.model import Memory, MemoryStatus, statement_key
from memory.ports import Tokens
from memory.recall.ranking.lexical import fold, terms, wording
from memory.typed import converted

Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int32]
Places: TypeAlias = npt.NDArray[np.intp]

HALF_LIFE_CLASSES = ("episodic", "semantic", "procedural", "reflective")
STATUSES = (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED, MemoryStatus.ARCHIVED)
NO_LABEL = -1
KEYS = ("id", "session_id", "project_id", "agent_id", "superseded_by")  # fields of a memory that hold ids
STATEMENT_DIGITS = 16  # hexadecimal digits of a statement key, 64 bits
NOT_COUNTED = -1  # `line_tokens` of a corpus without a tokenizer
# One record per memory. `slot`: index of its vector. `label`: number of the speaker's name. `ends_at`: when it
# becomes invalid or expires, whichever is first. `line_tokens`: tokens of its content on a line of a note.
# `statement`: the beginning of its `statement_key`. `is_manner`: it states how answers or texts should be written.
FACTS = np.dtype(
    [
        ("said_at", "f8"),
        ("created_at", "f8"),
        ("ends_at", "f8"),
        ("importance", "f4"),
        ("confidence", "f4"),
        ("characters", "i4"),
        ("slot", "i4"),
        ("line_tokens", "i4"),
        ("wording", "u8"),
        ("statement", "u8"),
        ("label", "i4"),
        ("half_life_class", "i1"),
        ("status", "i1"),
        ("is_correction", "?"),
        ("is_question", "?"),
        ("is_first_person", "?"),
        ("is_dated", "?"),
        ("is_manner", "?"),
    ]
)
NOT_STORED = -1
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Memory)
_NAMES = tuple(field.name for field in fields(Memory))
_DEFAULTS: dict[str, Any] = {
    field.name: field.default if field.default_factory is MISSING else field.default_factory()
    for field in fields(Memory)
}
_LABEL = re.compile(r"^([^\W\d_][\w.'’ -]{0,39}): ")
_QUESTION = re.compile(r"[?？]\W*(?:\[[^\]]*\])?\s*$")
_FIRST_PERSON = re.compile(
    r"\b(?:i|my|me|mine|we|our|us|i'm|i've|ich|mein\w*|wir|unser\w*|yo|mi|mis|nosotros|nuestr\w*)\b|我"
)
_DATED = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|weeks?|weekend|months?|years?|recently|since|summer|winter|spring|autumn"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november"
    r"|december|gestern|heute|morgen|letzte\w*|nachste\w*|woche|monat|jahr|montag|dienstag|mittwoch|donnerstag|freitag|samstag"
    r"|sonntag|ayer|hoy|manana|pasad[oa]|proxim[oa]|semana|mes|ano|lunes|martes|miercoles|jueves|viernes|sabado|domingo"
    r"|(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th))\b|昨天|今天|明天|上周|下周|上个?月|下个?月|去年|今年|明年|星期|周[一二三四五六日末]|\d月|年"
)
# How answers and texts should be written: "keep it to three bullet points", "British spelling", "回答要简短".
_MANNER = re.compile(
    r"\b(?:bullet(?: point)?s?"
    r"|(?:your|my|the|all|in|short|long|brief|concise|detailed|give) (?:answers?|replies|explanations?)"
    r"|(?:answer|reply|respond|explain|write)(?:s|ing)? (?:to )?(?:me )?(?:in|with|briefly|concisely|step by step)"
    r"|concise(?:ly)?|verbose|jargon|step by step|emojis?|spelling|adverbs|passive voice|formal(?:ity)?|informal|tone"
    r"|wants? (?:feedback|answers?|explanations?|replies|summaries|code)|sources"
    r"|antworte?\w*|stichpunkt\w*|erklarung\w*|knapp\w*|ausfuhrlich\w*|rechtschreibung"
    r"|respuestas?|respond\w*|vinetas|explicaciones|breves?|ortografia)\b"
    r"|回答|答复|回复|解释|讲解|要点|列点|分点|简短|简洁|简明|详细|推导|语气|措辞|表情|格式|繁体|简体"
)
_SHORT = 200  # characters: an instruction is short; a long text may mention anything


def encoded(memory: Memory) -> bytes:
    """MessagePack without the fields that have their default values; JSON for metadata that MessagePack cannot hold.

    Such are lone surrogates and integers beyond 64 bits. Raises ValueError, TypeError or RecursionError for values that
    no store of ours returns.
    """
    given = {name: value for name in _NAMES if (value := getattr(memory, name)) != _DEFAULTS[name]}
    try:
        return _ENCODER.encode(given)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(given), allow_nan=False).encode("ascii")


def decoded(stored: bytes) -> Memory:
    """Raises `msgspec.MsgspecError`, ValueError or `BadInput` for bytes that `encoded` did not produce."""
    if stored[:1] == b"{":
        return converted(json.loads(stored), Memory)
    return _DECODER.decode(stored)


class Memories:
    """Memories by row, most of them still encoded. A decoded memory is kept."""

    __slots__ = ("_ends", "_read", "_stored", "_where")

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self._read: dict[int, Memory] = dict(enumerate(memories))
        self._where = np.full(len(self._read), NOT_STORED, dtype=np.int32)  # row -> index of its bytes in `_stored`
        self._stored = b""
        self._ends = np.zeros(0, dtype=np.int64)

    @classmethod
    def of(cls, stored: bytes, sizes: npt.NDArray[np.int32]) -> Memories:
        """From the concatenated results of `encoded`, and their sizes."""
        memories = cls()
        memories._stored, memories._ends = stored, np.cumsum(sizes, dtype=np.int64)
        memories._where = np.arange(len(sizes), dtype=np.int32)
        return memories

    def __len__(self) -> int:
        return len(self._where)

    def __getitem__(self, row: int) -> Memory:
        row = range(len(self))[row]
        memory = self._read.get(row)
        if memory is None:
            memory = self._read[row] = decoded(self._piece(row))
        return memory

    def __iter__(self) -> Iterator[Memory]:
        """In the order of rows. Those that this decodes are not kept, so that a thread may look at all of them."""
        for row in range(len(self)):
            yield self._read.get(row) or decoded(self._piece(row))

    def joined(self, others: Sequence[Memory], order: npt.NDArray[np.intp]) -> Memories:
        both = Memories()
        both._stored, both._ends = self._stored, self._ends
        both._where = np.concatenate((self._where, np.full(len(others), NOT_STORED, dtype=np.int32)))[order]
        rows = np.full(len(self) + len(others), -1)
        rows[order] = np.arange(len(order))
        known = {**self._read, **dict(enumerate(others, start=len(self)))}
        both._read = {row: memory for place, memory in known.items() if (row := int(rows[place])) >= 0}
        return both

    def encoded(self) -> tuple[bytes, npt.NDArray[np.int32]]:
        """All memories as bytes, concatenated, and the size of each. Cheap if none was added."""
        if len(self._where) == len(self._ends) and (self._where == np.arange(len(self._ends))).all():
            return self._stored, np.diff(self._ends, prepend=0).astype(np.int32)
        pieces = [
            self._piece(row) if where != NOT_STORED else encoded(self._read[row])
            for row, where in enumerate(self._where.tolist())
        ]
        return b"".join(pieces), np.fromiter(map(len, pieces), dtype=np.int32, count=len(pieces))

    def _piece(self, row: int) -> bytes:
        number = self._where[row]
        return self._stored[self._ends[number - 1] if number else 0 : self._ends[number]]


class Numbering(dict[str, int]):
    """Names with numbers in order of first appearance."""

    @classmethod
    def listed(cls, names: Sequence[str]) -> Numbering:
        return cls(zip(names, range(len(names)), strict=True))

    def of(self, name: str) -> int:
        return self.setdefault(name, len(self))

    def kept(self, is_used: npt.NDArray[np.bool_]) -> tuple[Numbering, Ints]:
        """Only the names in use, and the new number of each old one."""
        numbers = np.cumsum(is_used, dtype=np.int32) - 1
        return Numbering.listed([name for name, number in self.items() if is_used[number]]), numbers


@dataclass(slots=True)
class Names:
    """The names behind the numbers in rows. `labels`: of speakers, folded, from memories "NAME: what NAME said"."""

    terms: Numbering = field(default_factory=Numbering)
    labels: Numbering = field(default_factory=Numbering)


@dataclass(frozen=True, slots=True)
class Ragged:
    """Lists of numbers of different lengths, concatenated."""

    values: Ints
    sizes: Ints

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Ragged:
        sizes = np.fromiter(map(len, lists), dtype=np.int32, count=len(lists))
        return cls(np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=int(sizes.sum())), sizes)

    def joined(self, other: Ragged, order: Places) -> Ragged:
        """The lists of both, reordered by `order`."""
        values, sizes = np.concatenate((self.values, other.values)), np.concatenate((self.sizes, other.sizes))
        starts, taken = (np.cumsum(sizes) - sizes)[order], sizes[order]
        ends = np.cumsum(taken)
        places = np.repeat(starts - (ends - taken), taken) + np.arange(ends[-1] if len(ends) else 0)
        return Ragged(values[places], taken)

    @property
    def rows(self) -> Ints:
        """The row of each value."""
        return np.repeat(np.arange(len(self.sizes), dtype=np.int32), self.sizes)


class EncodedMemory(NamedTuple):
    """One memory with everything derived from it; `facts` in the order of `FACTS`."""

    memory: Memory
    slot: int
    facts: tuple[Any, ...]
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class Rows:
    """Memories in columns, `n` rows each. Read-only."""

    keys: Mapping[str, list[str]] = field(default_factory=lambda: {name: [] for name in KEYS})  # of each in `KEYS`
    memories: Memories = field(default_factory=Memories)
    facts: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, dtype=FACTS))
    tokens: Ragged = field(default_factory=lambda: Ragged.of([]))

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def ids(self) -> list[str]:
        return self.keys["id"]

    def changed(self, gone: Iterable[int], added: Sequence[EncodedMemory]) -> Rows:
        """Without the rows `gone`, with `added`, sorted by session and time."""
        memories = [one.memory for one in added]
        keys = {name: [*own, *(getattr(memory, name) for memory in memories)] for name, own in self.keys.items()}
        facts = np.concatenate((self.facts, np.array([one.facts for one in added], dtype=FACTS)))
        times = facts["said_at"].tolist(), facts["created_at"].tolist()
        sorted_by = list(zip(keys["session_id"], *times, keys["id"], strict=True))
        left = np.ones(len(facts), dtype=np.bool_)
        left[list(gone)] = False
        order = sorted(np.flatnonzero(left).tolist(), key=sorted_by.__getitem__)
        places = np.array(order, dtype=np.intp)
        return Rows(
            keys={name: [own[place] for place in order] for name, own in keys.items()},
            memories=self.memories.joined(memories, places),
            facts=facts[places],
            tokens=self.tokens.joined(Ragged.of([one.tokens for one in added]), places),
        )

    def tidied(self, names: Names) -> tuple[Rows, Names]:
        """The same without terms and labels that no row uses any more: names are pieces of a user's text."""
        holds = np.bincount(self.tokens.values, minlength=len(names.terms)) > 0
        speaks = np.zeros(len(names.labels) + 1, dtype=np.bool_)
        speaks[self.facts["label"]] = True  # the last element stands for rows without a label
        if holds.all() and speaks[:-1].all():
            return self, names
        terms, term_numbers = names.terms.kept(holds)
        labels, label_numbers = names.labels.kept(speaks[:-1])
        facts = self.facts.copy()
        facts["label"] = np.append(label_numbers, NO_LABEL)[facts["label"]]
        tokens = Ragged(term_numbers[self.tokens.values], self.tokens.sizes)
        return replace(self, facts=facts, tokens=tokens), Names(terms, labels)


def read_off(memory: Memory, slot: int, names: Names, *, tokens: Tokens | None = None) -> EncodedMemory:
    """Derive everything that ranking needs from a memory; new names get new numbers. `tokens` None: nothing counted."""
    content = memory.content
    label, said = NO_LABEL, content
    if found := _LABEL.match(content):
        label = names.labels.of(fold(found[1]))
        said = content[found.end() :]
    folded = fold(said)
    facts = (
        memory.said_at,
        memory.created_at,
        min(at for at in (math.inf, memory.invalid_at, memory.expires_at) if at is not None),
        memory.importance,
        memory.confidence,
        len(content),
        slot,
        NOT_COUNTED if tokens is None else tokens(on_one_line(content)),
        wording(content),
        int(statement_key(content)[:STATEMENT_DIGITS], 16),
        label,
        HALF_LIFE_CLASSES.index(memory.memory_type),
        STATUSES.index(memory.status),
        memory.category == "correction",
        bool(_QUESTION.search(said)),
        bool(_FIRST_PERSON.search(folded)),
        bool(_DATED.search(folded)),
        len(said) <= _SHORT and bool(_MANNER.search(folded)),
    )
    return EncodedMemory(memory, slot, facts, [*map(names.terms.of, terms(content))])
