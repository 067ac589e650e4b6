"""A user's memories as arrays, laid out so that one question is answered by a few passes over numpy.

Rows stand in the order of their sessions and times, which is what makes "the turn before" a shift by one. Adding and
removing touch one memory each; the arrays that depend on order are laid out anew at the first question after a change
(about 50 ms for 10,000 memories), or whenever `prepare` is called. A corpus belongs to one user, is not safe for
threads, and must never read a clock: it knows when things were said, not what time it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from memory.model import Memory, MemoryStatus, Record, Vector
from memory.recall.concepts import concepts
from memory.recall.lexical import fold, terms, unspaced_share
from memory.recall.weights import DEFAULT_RANKING, Neighbours

Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int32]

LINK_SECONDS = 1_800.0  # memories of one session further apart than this are no neighbours: the talk moved on
LINK_SECONDS_WITHOUT_SESSION = 120.0  # without a session id only memories said in one breath count as one talk
SESSION_GAP_SECONDS = 43_200.0  # a session id that is used again after half a day starts a new session
SUCCESSIONS_MAX = 32  # from a superseded memory to what holds now; a fact that changed more often has lost its thread
BM25_SATURATION = 1.0  # k1: short memories rarely repeat a word, so repetition counts for little
BM25_LENGTH = 0.5  # b: a longer memory is rather richer than vaguer
ROWS_MIN = 64  # first size of the vector matrix
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
# How answers and texts should be: "keep it to three bullet points", "British spelling", "回答要简短".
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
_SHORT = 200  # characters: an instruction is short, and a long text speaks of anything


@dataclass(frozen=True, slots=True)
class Layout:
    """The arrays of one state of a corpus, all in row order, `n` rows. Read only."""

    slots: Ints  # where each row's vector stands
    memories: tuple[Memory, ...]
    said_at: npt.NDArray[np.float64]
    saturation: Floats  # of a term's count in a memory; likewise in its window, and in a session
    window_saturation: Floats
    is_linked: npt.NDArray[np.bool_]  # the row before is this one's predecessor in the same talk
    link: tuple[Floats, Floats]  # the weight of the row one (two) before, 0 where it belongs to another talk
    has_neighbours: bool
    session: Ints  # row -> session number, ascending
    session_starts: npt.NDArray[np.intp]
    session_saturation: Floats
    posting_rows: Ints  # rows that hold a term, ascending, grouped by term; beside it how often they do
    posting_counts: Floats
    posting_starts: npt.NDArray[np.intp]  # term -> start of its group; one more at the end
    concept_rows: dict[str, Ints]
    is_question: Floats
    is_first_person: Floats
    is_dated: Floats
    is_manner: Floats  # says how answers or texts should be
    unspaced: Floats
    importance: Floats
    confidence: Floats
    is_correction: Floats
    is_superseded: npt.NDArray[np.bool_]
    ends_at: npt.NDArray[np.float64]
    half_life_class: npt.NDArray[np.int8]
    label: Ints  # number of the speaker's name, -1 without
    projects: Ints  # number of each row's project in `project_numbers`; likewise agents
    project_numbers: dict[str, int]
    agents: Ints
    agent_numbers: dict[str, int]
    window_norms: Floats
    overtaken: Ints  # superseded rows whose successor is here, and in `overtaking` that successor's row
    overtaking: Ints

    @property
    def size(self) -> int:
        return len(self.memories)


@dataclass(frozen=True, slots=True)
class _Row:
    memory: Memory
    slot: int
    tokens: Ints
    concepts: frozenset[str]
    label: int
    marks: tuple[bool, bool, bool, bool]  # question, first person, dated, manner
    unspaced: float


HALF_LIFE_CLASSES = ("episodic", "semantic", "procedural", "reflective")


class Corpus:
    """One user's memories, ready to be ranked. Cheap to change, quick to ask."""

    def __init__(
        self,
        records: Iterable[Record] = (),
        *,
        dimension: int = 384,
        neighbours: Neighbours = DEFAULT_RANKING.neighbours,
    ) -> None:
        """`neighbours`: how much the turns around a memory count in its window; what is laid out depends on it."""
        self._vectors: Vector = np.zeros((ROWS_MIN, dimension), dtype=np.float32)
        self._rows: dict[str, _Row] = {}
        self._free: list[int] = []
        self._used = 0
        self._vocabulary: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._layout: Layout | None = None
        self._neighbours = neighbours
        for record in records:
            self.add(record)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._rows

    def memory(self, memory_id: str) -> Memory | None:
        """The memory with that id, whatever its status; None where there is none."""
        row = self._rows.get(memory_id)
        return None if row is None else row.memory

    @property
    def labels(self) -> dict[str, int]:
        """Speakers' names, folded, by number: of memories that read "NAME: what NAME said"."""
        return self._labels

    @property
    def size_bytes(self) -> int:
        """What the corpus holds in memory, estimated: vectors and arrays exactly, objects by their text and a
        constant."""
        text = sum(len(row.memory.content) * 2 + row.tokens.nbytes * 5 + 1_600 for row in self._rows.values())
        return self._vectors.nbytes + text + 120 * len(self._vocabulary)

    def add(self, record: Record) -> None:
        """Put a memory in, or in place of the one with its id. Raises ValueError for a vector of another dimension."""
        memory = record.memory
        if record.vector.shape != (self._vectors.shape[1],):
            raise ValueError(f"a vector of shape {self._vectors.shape[1:]} was expected, got {record.vector.shape}")
        known = self._rows.get(memory.id)
        slot = known.slot if known else self._free_slot()
        self._vectors[slot] = record.vector
        self._rows[memory.id] = self._row(memory, slot)
        self._layout = None

    def remove(self, memory_id: str) -> None:
        """Take a memory out; an unknown id is ignored."""
        row = self._rows.pop(memory_id, None)
        if row is not None:
            self._vectors[row.slot] = 0.0
            self._free.append(row.slot)
            self._layout = None

    def similarities(self, vector: Vector, layout: Layout) -> Floats:
        """The cosine of every row with the question."""
        found: Floats = (self._vectors[: self._used] @ vector)[layout.slots]
        return found

    def term_number(self, term: str) -> int:
        """The number of a term, -1 if no memory holds it."""
        return self._vocabulary.get(term, -1)

    def prepare(self) -> Layout:
        """The arrays, laid out anew if anything changed."""
        if self._layout is None:
            self._layout = self._lay_out()
        return self._layout

    def _free_slot(self) -> int:
        if self._free:
            return self._free.pop()
        if self._used == len(self._vectors):
            self._vectors = np.vstack((self._vectors, np.zeros_like(self._vectors)))
        self._used += 1
        return self._used - 1

    def _row(self, memory: Memory, slot: int) -> _Row:
        content = memory.content
        label, marks = -1, content
        found = _LABEL.match(content)
        if found:
            label = self._labels.setdefault(fold(found[1]), len(self._labels))
            marks = content[found.end() :]
        folded = fold(marks)
        numbers = [self._vocabulary.setdefault(term, len(self._vocabulary)) for term in terms(content)]
        return _Row(
            memory=memory,
            slot=slot,
            tokens=np.array(numbers, dtype=np.int32),
            concepts=concepts(marks),
            label=label,
            marks=(
                bool(_QUESTION.search(marks)),
                bool(_FIRST_PERSON.search(folded)),
                bool(_DATED.search(folded)),
                len(marks) <= _SHORT and bool(_MANNER.search(folded)),
            ),
            unspaced=unspaced_share(marks),
        )

    def _lay_out(self) -> Layout:
        rows = sorted(
            self._rows.values(),
            key=lambda row: (row.memory.session_id, row.memory.said_at, row.memory.created_at, row.memory.id),
        )
        memories = tuple(row.memory for row in rows)
        said_at = np.array([memory.said_at for memory in memories], dtype=np.float64)
        is_linked, starts_session = _talks(memories, said_at)
        link = _links(is_linked, self._neighbours)
        session = np.cumsum(starts_session, dtype=np.int32) - 1
        lengths = np.array([len(row.tokens) for row in rows], dtype=np.float32)
        slots = np.array([row.slot for row in rows], dtype=np.int32)
        tokens, token_rows = _token_stream(rows)
        terms_held, posting_rows, posting_counts = _postings(tokens, token_rows, len(rows))
        held = np.bincount(terms_held, minlength=len(self._vocabulary))
        projects, project_numbers = _numbered([memory.project_id for memory in memories])
        agents, agent_numbers = _numbered([memory.agent_id for memory in memories])
        overtaken, overtaking = _successions(memories)
        marks = np.array([row.marks for row in rows], dtype=np.float32).reshape(-1, 4)
        return Layout(
            slots=slots,
            memories=memories,
            said_at=said_at,
            saturation=_saturation(lengths),
            window_saturation=_saturation(windowed(lengths[None], link)[0]),
            is_linked=is_linked,
            link=link,
            has_neighbours=bool(is_linked.any()),
            session=session,
            session_starts=np.flatnonzero(starts_session),
            session_saturation=_saturation(np.bincount(session, weights=lengths).astype(np.float32)),
            posting_rows=posting_rows,
            posting_counts=posting_counts,
            posting_starts=np.concatenate(([0], np.cumsum(held))).astype(np.intp),
            concept_rows=_concept_rows(rows),
            is_question=marks[:, 0],
            is_first_person=marks[:, 1],
            is_dated=marks[:, 2],
            is_manner=marks[:, 3],
            unspaced=np.array([row.unspaced for row in rows], dtype=np.float32),
            importance=np.array([memory.importance for memory in memories], dtype=np.float32),
            confidence=np.array([memory.confidence for memory in memories], dtype=np.float32),
            is_correction=np.array([memory.category == "correction" for memory in memories], dtype=np.float32),
            is_superseded=np.array([memory.status == MemoryStatus.SUPERSEDED for memory in memories], dtype=np.bool_),
            ends_at=np.array([_ends_at(memory) for memory in memories], dtype=np.float64),
            half_life_class=np.array([HALF_LIFE_CLASSES.index(m.memory_type) for m in memories], dtype=np.int8),
            label=np.array([row.label for row in rows], dtype=np.int32),
            projects=projects,
            project_numbers=project_numbers,
            agents=agents,
            agent_numbers=agent_numbers,
            window_norms=self._window_norms(slots, link),
            overtaken=overtaken,
            overtaking=overtaking,
        )

    def _window_norms(self, slots: Ints, link: tuple[Floats, Floats]) -> Floats:
        """The lengths of the sums of neighbouring vectors, by which their dot products become cosines."""
        if not (link[0].any() or link[1].any()):
            return np.ones(len(slots), dtype=np.float32)
        if self._vectors.shape[1] == 1:  # cosines instead of vectors: what turns of one talk usually come to
            alone: Floats = windowed(np.ones((1, len(slots)), dtype=np.float32), link)[0]
            return np.power(alone, np.float32(0.75))
        norms: Floats = np.linalg.norm(np.ascontiguousarray(windowed(self._vectors[slots].T, link).T), axis=1)
        return np.maximum(norms, 1e-6)


def windowed(values: Floats, link: tuple[Floats, Floats]) -> Floats:
    """Each row's value plus its weighted neighbours', two to either side, within one talk. Shape `(k, n)`.

    `link`: per distance the weight of a neighbour, 0 where it belongs to another talk; see `_links`.
    """
    out = values.copy()
    for distance, weights in enumerate(link, start=1):
        if values.shape[1] <= distance:
            break
        joined = weights[distance:]
        out[:, distance:] += joined * values[:, :-distance]
        out[:, :-distance] += joined * values[:, distance:]
    return out


def _talks(
    memories: Sequence[Memory], said_at: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which rows follow their predecessor in one talk, and which start a session. A lone memory is a session of its
    own."""
    n = len(memories)
    is_linked = np.zeros(n, dtype=np.bool_)
    starts = np.ones(n, dtype=np.bool_)
    for i in range(1, n):
        before, here = memories[i - 1], memories[i]
        if before.session_id != here.session_id or before.project_id != here.project_id:
            continue
        gap = said_at[i] - said_at[i - 1]
        if here.session_id:
            is_linked[i] = gap <= LINK_SECONDS
            starts[i] = gap > SESSION_GAP_SECONDS
        else:  # stored together without a session, as a list of facts is, tells nothing about an order
            is_linked[i] = 0 < gap <= LINK_SECONDS_WITHOUT_SESSION
            starts[i] = not is_linked[i]
    return is_linked, starts


def _successions(memories: Sequence[Memory]) -> tuple[Ints, Ints]:
    """Rows of superseded memories, and of what holds in their place now."""
    places = {memory.id: row for row, memory in enumerate(memories)}
    found: list[tuple[int, int]] = []
    for row in range(len(memories)):
        here: int | None = row
        for _ in range(SUCCESSIONS_MAX):
            if here is None or memories[here].status is MemoryStatus.ACTIVE:
                break
            here = places.get(memories[here].superseded_by)
        if here is not None and here != row and memories[here].status is MemoryStatus.ACTIVE:
            found.append((row, here))
    pairs = np.array(found, dtype=np.int32).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _links(is_linked: npt.NDArray[np.bool_], neighbours: Neighbours) -> tuple[Floats, Floats]:
    two = is_linked.copy()
    two[1:] &= is_linked[:-1]
    two[:1] = False
    near, far = np.float32(neighbours.next), np.float32(neighbours.next_but_one)
    return is_linked.astype(np.float32) * near, two.astype(np.float32) * far


def _ends_at(memory: Memory) -> float:
    """When it stops being true, or of use, whichever comes first."""
    return min(at for at in (math.inf, memory.invalid_at, memory.expires_at) if at is not None)


def _saturation(lengths: Floats) -> Floats:
    """BM25's: how often a term must occur to be worth half of what it can be worth."""
    mean = float(lengths.mean()) if len(lengths) else 1.0
    out: Floats = BM25_SATURATION * (1.0 - BM25_LENGTH + BM25_LENGTH * lengths / (mean or 1.0))
    return np.maximum(out, 1e-3)


def _numbered(names: Sequence[str]) -> tuple[Ints, dict[str, int]]:
    """Each name as a number, so that comparing a column is one step. The empty name is always 0."""
    numbers = {"": 0}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int32), numbers


def _token_stream(rows: Sequence[_Row]) -> tuple[Ints, Ints]:
    """All terms one after another, and the row of each."""
    if not rows:
        return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
    sizes = [len(row.tokens) for row in rows]
    return np.concatenate([row.tokens for row in rows]), np.repeat(np.arange(len(rows), dtype=np.int32), sizes)


def _postings(tokens: Ints, token_rows: Ints, size: int) -> tuple[npt.NDArray[np.int64], Ints, Floats]:
    """Each pair of a term and a row that holds it, once: the terms ascending, the rows, how often."""
    pairs, counts = np.unique(tokens.astype(np.int64) * max(size, 1) + token_rows, return_counts=True)
    return pairs // max(size, 1), (pairs % max(size, 1)).astype(np.int32), counts.astype(np.float32)


def _concept_rows(rows: Sequence[_Row]) -> dict[str, Ints]:
    found: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        for name in row.concepts:
            found.setdefault(name, []).append(number)
    return {name: np.array(numbers, dtype=np.int32) for name, numbers in found.items()}
