"""The receipt of one request from what its stages came to, as plain values, limited in size.

Of what was not shown to the model only the score and the reason are kept. It holds ids and scores, never a memory's
text; the query is the only text of a user in it. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memory.model import Candidate, CandidateVerdict, CarriedNote, Placement, Query, Receipt, ReceiptCandidate
from memory.recall.compacted import in_receipt
from memory.recall.notes.past_notes import NotePlan
from memory.recall.notes.past_talk_notes import PastTalk
from memory.recall.past_talk_recall import NO_TALK
from memory.recall.signals.classifier import QuestionKind
from memory.recall.signals.search_decision import Decision
from memory.recall.stages import AskedChat, EmbeddedQuestion, Reached, Review, Rewrite, Searched
from memory.recall.withholding import NoteVerdict

CANDIDATES_MAX = 30  # plus memories that were injected from further down
EXPLAINED = (CandidateVerdict.INJECTED, CandidateVerdict.WITHHELD)  # whose score is kept with its parts
QUERY_CHARACTERS_MAX = 2_000  # the longest query
DIGITS, MILLISECOND_DIGITS = 6, 3  # digits kept of scores and of times


@dataclass(frozen=True, slots=True)
class StageResults:
    """What the stages came to: what was found, the notes that are planned for it, and whether they go along."""

    asked: AskedChat
    searched: Searched
    review: Review
    planned: NotePlan
    verdict: NoteVerdict


def receipt_of(answered: Receipt, results: StageResults, reached: Reached, *, keeps_words: bool) -> Receipt:
    """The whole of a receipt that says whose request got which answer. Memories that were not placed count as not
    injected, whatever was planned. `keeps_words`: whether it may hold what was asked.
    """
    planned, verdict, query = results.planned, results.verdict, reached.latest(Query)
    candidates = results.searched.ranked.candidates
    placed = None if verdict.placement is Placement.OFF else planned
    weighed = _weighed(candidates, verdict.cuts(results.searched.selection.cuts, planned), placed)
    asked = query.text[:QUERY_CHARACTERS_MAX] if query is not None and keeps_words else ""
    return replace(
        answered,
        signals=_decision(reached.latest(Decision))
        | verdict.signals(planned)
        | _rewrite(reached.latest(Rewrite), keeps_words=keeps_words)
        | _opening(planned)
        | in_receipt(results.review.compaction.state)
        | _kinds(reached),
        query=asked.encode(errors="replace").decode(),  # no lone surrogates
        candidates=weighed,
        left_out=len(candidates) - len(weighed),
        notes=_carried(placed, verdict.placement),
        timings_ms={stage: _rounded(value, MILLISECOND_DIGITS) for stage, value in reached.timings_ms().items()},
    )


def _decision(decision: Decision | None) -> dict[str, object]:
    if decision is None:
        return {}
    label = {"label": str(decision.label)} if decision.label is not None else {}
    scores = {"scores": dict(decision.scores)} if decision.scores else {}
    return {"search": decision.search, "reason": decision.reason, **label, **scores}


def _rewrite(rewrite: Rewrite | None, *, keeps_words: bool) -> dict[str, object]:
    """What became of it alone where nothing that was said may stay."""
    if rewrite is None:
        return {}
    return {"rewrite": rewrite.outcome, **(rewrite.words if keeps_words else {})}


def _opening(planned: NotePlan) -> dict[str, object]:
    """The versions of the profiles that open the new note."""
    if planned.profile is None:
        return {}
    return {"profile": dict(zip(("version", "project_version"), planned.profile.versions, strict=True))}


def _kinds(reached: Reached) -> dict[str, object]:
    """How much the question is of each kind, and what was found of past conversations."""
    embedded, past = reached.latest(EmbeddedQuestion), reached.latest(PastTalk) or NO_TALK
    if embedded is None:
        return {}
    said: dict[str, dict[str, object]] = {kind: {"score": round(score, 3)} for kind, score in embedded.kinds.items()}
    answers = {one.answer.id for one in past.passages}
    said[QuestionKind.PAST_TALK] |= {"summaries": len(past.summaries), "answers": len(answers)}
    return {**said}


def _weighed(
    candidates: Sequence[Candidate], cuts: Mapping[str, CandidateVerdict], plan: NotePlan | None
) -> tuple[ReceiptCandidate, ...]:
    in_profile: set[str] = set()
    if plan is not None and plan.profile is not None:
        in_profile = set(plan.profile.memory_ids) - set(plan.found_ids)
    fresh = set(plan.fresh.memory_ids) - in_profile if plan is not None and plan.fresh is not None else set()
    in_notes = set(plan.memory_ids()) - fresh if plan is not None else set()

    def verdict(memory_id: str) -> CandidateVerdict:
        if memory_id in fresh:
            return CandidateVerdict.INJECTED
        if memory_id in in_profile:
            return CandidateVerdict.IN_PROFILE
        if memory_id in in_notes:
            return CandidateVerdict.ALREADY_TOLD
        return cuts.get(memory_id, CandidateVerdict.NOT_CHOSEN)

    shown = list(candidates[:CANDIDATES_MAX])
    if fresh - {candidate.memory.id for candidate in shown}:  # rare: only then are the other candidates worth a look
        shown += [candidate for candidate in candidates[CANDIDATES_MAX:] if candidate.memory.id in fresh]
    weighed = []
    for candidate in shown:
        of = verdict(candidate.memory.id)
        parts = candidate.parts if of in EXPLAINED else {}
        rounded = {name: _rounded(part, DIGITS) for name, part in parts.items()}
        weighed.append(ReceiptCandidate(candidate.memory.id, _rounded(candidate.score, DIGITS), rounded, of))
    return tuple(weighed)


def _carried(plan: NotePlan | None, placement: Placement) -> tuple[CarriedNote, ...]:
    if plan is None:
        return ()
    is_merged = placement is Placement.SYSTEM
    return tuple(
        CarriedNote(None if is_merged else index, note.memory_ids, note.tokens, is_new=note is plan.fresh)
        for index, note in sorted(plan.notes.items())
    )


def _rounded(value: float, digits: int) -> float:
    """What JSON cannot hold becomes 0."""
    return round(float(value), digits) if math.isfinite(value) else 0.0
