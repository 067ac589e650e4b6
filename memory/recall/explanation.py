"""What a receipt says of the stages of a request, as plain values. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from memory.model import Query
from memory.recall.compacted import in_receipt
from memory.recall.notes.past_notes import NotePlan
from memory.recall.notes.past_talk_notes import PastTalk
from memory.recall.notes.receipts import Findings
from memory.recall.past_talk_recall import NO_TALK
from memory.recall.signals.question_kinds import QuestionKind
from memory.recall.signals.search_decision import Decision
from memory.recall.stages import AskedChat, EmbeddedQuestion, Reached, Review, Rewrite, Searched
from memory.recall.withholding import NoteVerdict


@dataclass(frozen=True, slots=True)
class StageResults:
    """What the stages came to: what was found, the notes that are planned for it, and whether they go along."""

    asked: AskedChat
    searched: Searched
    review: Review
    planned: NotePlan
    verdict: NoteVerdict


def findings_of(results: StageResults, reached: Reached, *, keeps_words: bool) -> Findings:
    """`keeps_words`: whether the receipt may hold what was asked."""
    planned, verdict, query = results.planned, results.verdict, reached.latest(Query)
    return Findings(
        signals=_decision(reached.latest(Decision))
        | verdict.signals(planned)
        | _rewrite(reached.latest(Rewrite), keeps_words=keeps_words)
        | _opening(planned)
        | in_receipt(results.review.compaction.state)
        | _kinds(reached),
        query=query.text if query is not None and keeps_words else "",
        candidates=results.searched.ranked.candidates,
        cuts=verdict.cuts(results.searched.selection.cuts, planned),
        timings_ms=reached.timings_ms(),
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
    found = {"summaries": len(past.summaries), "answers": len({one.answer.id for one in past.passages})}
    said[QuestionKind.PAST_TALK].update(found)
    return dict(said)
