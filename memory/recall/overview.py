"""Stage 8 for a question about the user, or their project, as a whole: the most important memories over all attributes.

No memory resembles "What do you know about me?", so nothing is compared with the question: the order is that of a
profile, and what a profile leaves out follows it. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from memory.model import Candidate, Memory, Question
from memory.model.recalled import AskedWhole
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import Ranked, open_rows
from memory.recall.ranking.rows import NOT_COUNTED
from memory.recall.ranking.superseded_in_notes import review_notes
from memory.service.profile_layout import by_importance

EXAMINED_MAX = 300  # of a chat's corpus, the most important, and the latest of those: sorted in 5 ms


def overview(corpus: Corpus, asked: Question, *, limit: int, examined: int = EXAMINED_MAX) -> Ranked:
    """The best `limit`, best first; all of them are relevant."""
    layout = corpus.prepare()
    if not layout.size:
        return Ranked()
    is_open = open_rows(layout, asked)
    if asked.whole is AskedWhole.PROJECT:
        is_open &= layout.projects == layout.project_numbers.get(asked.scope.project_id, -1)
    rows = np.flatnonzero(is_open)
    if len(rows) > examined:
        rows = rows[np.lexsort((-layout.facts["said_at"][rows], -layout.facts["importance"][rows].round(1)))[:examined]]
    found = by_importance((layout.memories[int(row)] for row in rows), now=asked.now)[:limit]
    before = review_notes(corpus, asked.in_notes)
    counted = {memory.id: int(layout.facts["line_tokens"][layout.places[memory.id]]) for memory in found}
    return overview_of(found, tokens=counted, in_notes=before.still_valid)


def overview_of(
    memories: Sequence[Memory], *, tokens: dict[str, int] | None = None, in_notes: tuple[Memory, ...] = ()
) -> Ranked:
    """These memories, in this order. `tokens`: of their lines, as far as they are counted."""
    counted = tokens or {}
    costs = [counted.get(memory.id, NOT_COUNTED) for memory in memories]
    return Ranked(
        candidates=tuple(
            Candidate(memory, 1.0 - place / len(memories), tokens=None if cost == NOT_COUNTED else cost)
            for place, (memory, cost) in enumerate(zip(memories, costs, strict=True))
        ),
        odds=(math.inf,) * len(memories),
        is_relevant=(True,) * len(memories),
        cosines=(1.0,) * len(memories),
        in_notes=in_notes,
        is_overview=True,
    )
