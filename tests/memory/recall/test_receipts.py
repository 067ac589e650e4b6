"""A receipt says why, within bounds, and never what a memory says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry

from memory.model import Memory, Placement
from memory.model.recalled import (
    Candidate,
    CandidateVerdict,
    CarriedNote,
    PastNote,
    Query,
    RecallStatus,
    Receipt,
    Selection,
)
from memory.recall.explanation import CANDIDATES_MAX, StageResults, receipt_of
from memory.recall.notes.past_notes import CarriedNotes, NotePlan
from memory.recall.ranking.ranking import Ranked
from memory.recall.stages import AskedChat, Reached, Review, Searched
from memory.recall.withholding import NoteVerdict
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import StageTiming

PAST = PastNote("old words", ("m0",), 40)
FRESH = PastNote("new words", ("m1", "m2"), 70)
PLAN = NotePlan({1: PAST, 5: FRESH}, FRESH)


def candidate(memory_id: str, score: float = 1.0, **parts: float) -> Candidate:
    return Candidate(Memory(memory_id, "ann", f"secret words of {memory_id}", 1, 1, 1), score, parts)


def receipt(plan: NotePlan = PLAN, placement: Placement = Placement.SYSTEM, **found: Any) -> Receipt:
    """`found`: candidates, cuts, the query, and what stages took, in seconds."""
    reached = Reached(Metrics(CollectorRegistry()))
    reached.add(Query(found.get("query", "")))
    for stage, seconds in found.get("took", {}).items():
        reached.add(StageTiming(stage, 0.0, seconds))
    chosen = Selection((), 0, found.get("cuts", {}))
    searched = Searched(RecallStatus.EMPTY, "", Ranked(found.get("candidates", ())), chosen)
    review = Review(placement, CarriedNotes({}, None, "", is_settled=False))
    asked: AskedChat = None  # type: ignore[assignment]  # a receipt takes nothing of it
    results = StageResults(asked, searched, review, plan, NoteVerdict(placement))
    return receipt_of(Receipt("r", "ann", 5.0, RecallStatus.USED, "found"), results, reached, keeps_words=True)


def test_every_candidate_has_its_scores_and_what_became_of_it() -> None:
    found = receipt(
        candidates=[candidate(f"m{n}", 1 / (n + 1), dense=0.5) for n in range(6)],
        cuts={"m3": CandidateVerdict.OVER_BUDGET, "m4": CandidateVerdict.DUPLICATE},
    )
    assert [(one.memory_id, one.verdict) for one in found.candidates] == [
        ("m0", CandidateVerdict.ALREADY_TOLD),
        ("m1", CandidateVerdict.INJECTED),
        ("m2", CandidateVerdict.INJECTED),
        ("m3", CandidateVerdict.OVER_BUDGET),
        ("m4", CandidateVerdict.DUPLICATE),
        ("m5", CandidateVerdict.NOT_CHOSEN),
    ]
    assert found.candidates[2].score == 0.333333
    assert [one.parts for one in found.candidates] == [{}, {"dense": 0.5}, {"dense": 0.5}, {}, {}, {}]


def test_notes_say_where_they_stood_which_one_is_new_and_what_was_placed_nowhere_was_not_injected() -> None:
    placed = receipt(placement=Placement.BEFORE_LAST_USER).notes
    assert placed == (CarriedNote(1, ("m0",), 40, is_new=False), CarriedNote(5, ("m1", "m2"), 70, is_new=True))
    assert [note.before for note in receipt().notes] == [None, None]
    nowhere = receipt(candidates=[candidate("m1")], placement=Placement.OFF)
    assert (nowhere.notes, nowhere.candidates[0].verdict) == ((), CandidateVerdict.NOT_CHOSEN)


def test_no_memory_s_text_is_in_it() -> None:
    found = receipt(candidates=[candidate("m1")], query="my own words")
    assert "words" not in repr(found).replace("my own words", "")
    assert found.memory_ids() == ("m0", "m1", "m2")


def test_it_is_bounded_and_counts_what_it_leaves_out_but_shows_all_that_was_injected() -> None:
    late = PastNote("x", ("m190",), 10)
    many = [candidate(f"m{n}") for n in range(200)]
    found = receipt(NotePlan({0: late}, late), candidates=many, query="q" * 100_000)
    assert len(found.candidates) == CANDIDATES_MAX + 1
    assert found.candidates[-1].memory_id == "m190"
    assert found.left_out == 200 - CANDIDATES_MAX - 1
    assert len(found.query) == 2_000


def test_values_are_plain_whatever_the_stages_computed_with() -> None:
    odd = candidate("m1", float("nan"), dense=np.float32(0.25), lexical=math.inf)  # type: ignore[arg-type]  # as numpy gives
    took = {"rank": np.float64(0.00123456)}
    found = receipt(candidates=[odd], query="half \ud800", took=took)
    assert found.candidates[0].score == 0.0
    assert found.candidates[0].parts == {"dense": 0.25, "lexical": 0.0}
    assert {type(value) for value in found.candidates[0].parts.values()} == {float}
    assert found.timings_ms == {"rank": 1.235}
    assert found.query == "half ?"
