"""The rows of a corpus as arrays, ordered by session and time, so that "the turn before" is a shift by one.

The arrays that are expensive to compute (the inverted index, the norms of windows) form a value of their own,
`LayoutArrays`, which snapshots store. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from memory.model import MemoryStatus, Vector
from memory.recall.ranking.rows import FACTS, STATUSES, Floats, Ints, Memories, Names, Places, Ragged, Rows

LINK_SECONDS = 1_800.0  # memories of one session further apart than this are not neighbours: the topic changed
# Without a session id, only memories said almost together belong to one conversation.
LINK_SECONDS_WITHOUT_SESSION = 120.0
SESSION_GAP_SECONDS = 43_200.0  # a session id that is used again after half a day starts a new session
SUCCESSIONS_MAX = 32  # from a superseded memory to the one that holds now; longer chains are not followed
BM25_SATURATION = 1.0  # k1: short memories rarely repeat a word, so repetition counts for little
BM25_LENGTH = 0.5  # b: longer memories tend to say more, rather than to be vaguer
WINDOW_REACH = 2  # neighbours on either side
WINDOW_WEIGHTS = (1.0, 0.5)  # of the next and the next but one, where the memory itself weighs 1
ROWS_IN_A_BLOCK = 128  # block size whose vectors fit into a core's cache while they are summed
ACTIVE, SUPERSEDED = STATUSES.index(MemoryStatus.ACTIVE), STATUSES.index(MemoryStatus.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class LayoutArrays:
    """The expensive arrays. `posting_rows`: the rows that hold a term, ascending, grouped by term."""

    posting_rows: Ints
    posting_counts: Floats  # how often the row holds the term
    posting_starts: Places  # term -> start of its group; one entry more at the end
    window_norms: Floats


@dataclass(frozen=True, slots=True)
class Layout:
    """The arrays of one state of a corpus, in row order, `n` rows. Read-only."""

    ids: list[str]
    memories: Memories
    places: dict[str, int]  # the row of each memory, by its id
    sessions: list[str]  # ascending
    facts: Mapping[str, npt.NDArray[Any]]  # the columns of `FACTS`
    saturation: Floats  # of a term's count in a memory; the next ones: in its window, in its session
    window_saturation: Floats
    is_linked: npt.NDArray[np.bool_]  # the row before is its predecessor in the same conversation
    link: tuple[Floats, Floats]  # the weight of the row one (two) before, 0 if it belongs to another conversation
    has_neighbours: bool
    session: Ints  # row -> session number, ascending
    session_starts: Places
    session_saturation: Floats
    laid: LayoutArrays
    is_superseded: npt.NDArray[np.bool_]
    projects: Ints  # number of each row's project in `project_numbers`; likewise agents
    project_numbers: dict[str, int]
    agents: Ints
    agent_numbers: dict[str, int]
    overtaken: Ints  # superseded rows whose successor is in the corpus; `overtaking` holds the successor's row
    overtaking: Ints

    @property
    def size(self) -> int:
        return len(self.memories)


def lay_out(rows: Rows, names: Names, vectors: Vector, *, laid: LayoutArrays | None = None) -> Layout:
    """`vectors` by slot. `laid`: the arrays of an earlier layout of the same rows, to be reused."""
    facts = {name: np.ascontiguousarray(rows.facts[name]) for name in FACTS.names or ()}
    said_at, slots = facts["said_at"], facts["slot"]
    projects, project_numbers = numbered(rows.keys["project_id"])
    agents, agent_numbers = numbered(rows.keys["agent_id"])
    is_linked, starts_session = _talks(numbered(rows.keys["session_id"])[0], projects, said_at)
    link = _links(is_linked)
    session = np.cumsum(starts_session, dtype=np.int32) - 1
    lengths = rows.tokens.sizes.astype(np.float32)
    places = dict(zip(rows.ids, range(len(rows)), strict=True))
    overtaken, overtaking = _successions(rows, places)
    return Layout(
        ids=rows.ids,
        memories=rows.memories,
        places=places,
        sessions=rows.keys["session_id"],
        facts=facts,
        saturation=_saturation(lengths),
        window_saturation=_saturation(windowed(lengths[None], link)[0]),
        is_linked=is_linked,
        link=link,
        has_neighbours=bool(is_linked.any()),
        session=session,
        session_starts=np.flatnonzero(starts_session),
        session_saturation=_saturation(np.bincount(session, weights=lengths).astype(np.float32)),
        laid=laid or LayoutArrays(*_postings(rows.tokens, len(names.terms)), _window_norms(vectors, slots, link)),
        is_superseded=facts["status"] == SUPERSEDED,
        projects=projects,
        project_numbers=project_numbers,
        agents=agents,
        agent_numbers=agent_numbers,
        overtaken=overtaken,
        overtaking=overtaking,
    )


def windowed(values: Floats, link: tuple[Floats, Floats]) -> Floats:
    """Each row's value plus its weighted neighbours', two on either side. Shape `(k, n)`.

    `link`: their weights by distance, 0 in another conversation.
    """
    out = values.copy(order="K")
    for distance, weights in enumerate(link, start=1):
        if values.shape[1] <= distance:
            break
        joined = weights[distance:]
        out[:, distance:] += joined * values[:, :-distance]
        out[:, :-distance] += joined * values[:, distance:]
    return out


def _talks(
    sessions: Ints, projects: Ints, said_at: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which rows follow their predecessor in one conversation, and which start a session."""
    is_linked = np.zeros(len(said_at), dtype=np.bool_)
    starts = np.ones(len(said_at), dtype=np.bool_)
    is_together = (sessions[1:] == sessions[:-1]) & (projects[1:] == projects[:-1])
    has_session, gap = sessions[1:] > 0, np.diff(said_at)
    # Memories stored together without a session, such as a list of facts, have no order.
    follows = np.where(has_session, gap <= LINK_SECONDS, (gap > 0) & (gap <= LINK_SECONDS_WITHOUT_SESSION))
    is_linked[1:] = is_together & follows
    starts[1:] = ~is_together | np.where(has_session, gap > SESSION_GAP_SECONDS, ~follows)
    return is_linked, starts


def _successions(rows: Rows, places: dict[str, int]) -> tuple[Ints, Ints]:
    """The rows of superseded memories, and the rows of their current successors."""
    is_active = (rows.facts["status"] == ACTIVE).tolist()
    found: list[tuple[int, int]] = []
    for row in np.flatnonzero(rows.facts["status"] != ACTIVE).tolist():
        here: int | None = row
        for _ in range(SUCCESSIONS_MAX):
            if here is None or is_active[here]:
                break
            here = places.get(rows.keys["superseded_by"][here])
        if here is not None and is_active[here]:
            found.append((row, here))
    pairs = np.array(found, dtype=np.int32).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _links(is_linked: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    two = is_linked.copy()
    two[1:] &= is_linked[:-1]
    two[:1] = False
    near, far = map(np.float32, WINDOW_WEIGHTS)
    return is_linked.astype(np.float32) * near, two.astype(np.float32) * far


def _window_norms(vectors: Vector, slots: Ints, link: tuple[Floats, Floats]) -> Floats:
    """Norms of the sums of neighbouring vectors, by which dot products are divided to get cosines."""
    norms = np.ones(len(slots), dtype=np.float32)
    if vectors.shape[1] == 1:  # cosines in place of vectors: a typical norm of conversation turns
        alone: Floats = windowed(norms[None], link)[0]
        return np.power(alone, np.float32(0.75))
    for start in range(0, len(slots), ROWS_IN_A_BLOCK):
        first, last = max(0, start - WINDOW_REACH), min(len(slots), start + ROWS_IN_A_BLOCK + WINDOW_REACH)
        here = (link[0][first:last], link[1][first:last])
        if not (here[0].any() or here[1].any()):
            continue
        sums = windowed(vectors[slots[first:last]].T, here)
        lengths = np.sqrt(np.einsum("ij,ij->j", sums, sums))[start - first :][:ROWS_IN_A_BLOCK]
        norms[start : start + ROWS_IN_A_BLOCK] = np.maximum(lengths, 1e-6)
    return norms


def _saturation(lengths: Floats) -> Floats:
    """BM25's saturation: the term count at which a term contributes half of its maximum."""
    mean = float(lengths.mean()) if len(lengths) else 1.0
    out: Floats = BM25_SATURATION * (1.0 - BM25_LENGTH + BM25_LENGTH * lengths / (mean or 1.0))
    return np.maximum(out, 1e-3)


def numbered(names: Sequence[str]) -> tuple[Ints, dict[str, int]]:
    """Each name as a number, so that a column is compared in one operation. The empty name is always 0."""
    numbers = {"": 0}
    for name in dict.fromkeys(names):
        numbers.setdefault(name, len(numbers))
    return np.fromiter(map(numbers.__getitem__, names), dtype=np.int32, count=len(names)), numbers


def _postings(tokens: Ragged, terms: int) -> tuple[Ints, Floats, Places]:
    """The inverted index: rows by term, ascending; counts; and the start of each term's group."""
    size = max(len(tokens.sizes), 1)
    pairs, counts = np.unique(tokens.values.astype(np.int64) * size + tokens.rows, return_counts=True)
    held = np.bincount(pairs // size, minlength=terms)
    starts = np.concatenate(([0], np.cumsum(held))).astype(np.intp)
    return (pairs % size).astype(np.int32), counts.astype(np.float32), starts
