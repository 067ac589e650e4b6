"""The settings of recall, its outcome, and the trace that the stages of one request fill.

Each stage writes its result into the trace as soon as it has it, so that results found before the deadline are used and
reported. A trace must not keep anything beyond its request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from memory.model import (
    CompactedHistory,
    CompactedState,
    Note,
    Placement,
    ProfileText,
    RecallStatus,
    Selection,
    Vector,
)
from memory.model.arms import NO_HOLDOUT, Arm, HoldoutRule, Withholding
from memory.ports import ChatState, ResentHistory
from memory.recall.notes.past_notes import CarriedNotes
from memory.recall.notes.past_talk_notes import PastTalk
from memory.recall.notes.profile_notes import ProfileUse
from memory.recall.ranking.ranking import Ranked
from memory.recall.signals.question_kinds import KindScores
from memory.recall.signals.search_decision import Decision
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import StageTiming


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """How recall works where a request does not say otherwise."""

    is_enabled: bool = True
    deadline_seconds: float = 0.120  # inside Envoy's message_timeout (1 s), so that a late request is still stripped
    in_flight_max: int = 16  # question embeddings; `Admission` allows what they have time for, often fewer
    token_budget: int = 800
    answer_reserve_tokens: int = 1_024  # of a window, for an answer without a limit of its own
    retrieval_limit: int | None = None
    similarity_threshold: float | None = None
    placement: Placement = Placement.BEFORE_LAST_USER
    compacts: bool = False  # long histories, where a request does not say otherwise
    compacted_tokens: int = 1_000  # aimed at for a compacted prompt: a new note takes what state and turns leave
    profile: ProfileUse | None = ProfileUse.WITH_MEMORIES  # None: no profile goes along
    is_shadow: bool = False  # recall runs fully, and no note goes along
    holdout: HoldoutRule = NO_HOLDOUT
    recalls_answers: bool = False  # of the assistant, for questions about what was said
    keeps_words: bool = True  # of questions, in receipts; a request that is not to be stored leaves none in any case


@dataclass(frozen=True, slots=True)
class RecallOutcome:
    """What to do with the request. `reason` is a short label for metrics.

    `note_keys`: the keys of those notes in the prompt that are at messages of this request, oldest first.
    """

    status: RecallStatus
    reason: str
    count: int = 0
    receipt_id: str = ""
    notes: tuple[Note, ...] = ()
    compacted: CompactedHistory | None = None
    resent: ResentHistory | None = None  # the history, if a state of it may be due
    note_keys: tuple[str, ...] = ()
    stages: tuple[StageTiming, ...] = ()  # in the event loop's time


@dataclass(slots=True)
class Trace:
    """What was found for one request so far. `ends_at`: the event loop's time, `began_at`: Unix seconds."""

    began_at: float
    ends_at: float
    placement: Placement
    carried: CarriedNotes
    keys: Mapping[int, str] = field(default_factory=dict)  # of the conversation's notes, by message
    stored: ChatState = field(default_factory=ChatState)  # what was read when the request came
    keeps_words: bool = True  # whether the receipt may hold what was asked
    decision: Decision | None = None
    query: str = ""
    plain: tuple[RecallStatus, str] | None = None  # result of the plain search; None until it has ended
    # Outcome of the rewrite, for the receipt; empty if none was asked for.
    rewrite: dict[str, str] = field(default_factory=dict)
    ranked: Ranked = field(default_factory=Ranked)
    selection: Selection = field(default_factory=lambda: Selection((), 0))
    timings_ms: dict[str, float] = field(default_factory=dict)
    stages: list[StageTiming] = field(default_factory=list)
    profile: ProfileText | None = None  # goes along with this question
    vector: Vector | None = None  # of the query
    kinds: KindScores | None = None  # how much the question is of each kind; None: not examined
    past: PastTalk = field(default_factory=PastTalk)  # what was found of past conversations
    resent: ResentHistory | None = None  # None: this request is not to be compacted
    compacted: CompactedState | None = None  # replaces the beginning of the history
    arm: Arm | None = None  # of a question for which a new note was found, if conversations are held out
    withheld: Withholding | None = None  # why the planned notes do not go along
    are_notes_reviewed: bool = False  # `carried` holds the notes of the conversation

    @property
    def seconds_left(self) -> float:
        """Until the deadline; negative past it."""
        return self.ends_at - asyncio.get_running_loop().time()

    @property
    def kept_query(self) -> str:
        """As the receipt shows it."""
        return self.query if self.keeps_words else ""

    @property
    def kept_rewrite(self) -> dict[str, str]:
        """Of the rewrite, what became of it alone where nothing that was said may stay."""
        return {name: said for name, said in self.rewrite.items() if self.keeps_words or name == "rewrite"}

    @contextmanager
    def timed(self, stage: str, metrics: Metrics) -> Iterator[None]:
        """Measure the duration of a stage, even one that the deadline ends.

        Not by the loop: the time of uvloop has whole milliseconds.
        """
        began_at, began = asyncio.get_running_loop().time(), perf_counter()
        try:
            yield
        finally:
            took = perf_counter() - began
            self.timings_ms[stage] = took * 1000
            self.stages.append(StageTiming(stage, began_at, took))
            metrics.recall_seconds.labels(stage).observe(took)
