"""What the stages of one request take and return, and the list in which the pipeline keeps what they returned.

Every value is frozen: a stage takes the results of earlier ones and returns its own, which is added to `Reached` at
once, so that the deadline takes only what is missing then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

from memory.chat.completions import ChatRequest
from memory.model import CompactedHistory, Conversation, Note, Placement, RecallStatus, Scope, Selection, Vector
from memory.model.arms import NO_HOLDOUT, HoldoutRule
from memory.ports import ChatState
from memory.recall.compacted import NO_STATE, FoundState
from memory.recall.notes.past_notes import CarriedNotes
from memory.recall.notes.profile_notes import ProfileUse
from memory.recall.ranking.ranking import Ranked
from memory.recall.signals.classifier import KindScores
from memory.recall.signals.upstream import UpstreamSignals
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import StageTiming

T = TypeVar("T")


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
    recalls_summaries: bool = True
    recalls_answers: bool = False  # of the assistant, for questions about what was said
    keeps_words: bool = True  # of questions, in receipts; a request that is not to be stored leaves none in any case


@dataclass(frozen=True, slots=True)
class RecallOutcome:
    status: RecallStatus
    reason: str  # a short label for metrics
    count: int = 0
    receipt_id: str = ""
    notes: tuple[Note, ...] = ()
    compacted: CompactedHistory | None = None
    note_keys: tuple[str, ...] = ()  # of the notes in the prompt that are at messages of this request, oldest first


@dataclass(frozen=True, slots=True)
class Review:
    """The notes that a conversation carries, where this model accepts notes, and what replaces its beginning."""

    placement: Placement
    carried: CarriedNotes
    compaction: FoundState = NO_STATE
    is_complete: bool = False  # all was looked up, and the notes are those for which the model's window has room


@dataclass(frozen=True, slots=True)
class AskedChat:
    """A chat that may get a note."""

    scope: Scope
    request: ChatRequest
    conversation: Conversation
    upstream: UpstreamSignals
    keys: Mapping[int, str]  # of the conversation's notes, by message
    stored: ChatState  # what was read of it when it came
    unreviewed: Review  # as far as anything is known of its notes before they are looked up
    began_at: float  # Unix seconds
    ends_at: float  # its deadline, in the event loop's time

    @property
    def seconds_left(self) -> float:
        """Until the deadline; negative past it."""
        return self.ends_at - asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class EmbeddedQuestion:
    vector: Vector
    kinds: KindScores  # how much the question is of each kind


@dataclass(frozen=True, slots=True)
class Searched:
    """What was found and selected, and the status if no note is injected."""

    status: RecallStatus
    reason: str
    ranked: Ranked = field(default_factory=Ranked)
    selection: Selection = field(default_factory=lambda: Selection((), 0))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What became of the rewriting of a question."""

    outcome: str
    words: Mapping[str, str] = field(default_factory=dict)  # that were searched for too, by their names in a receipt


@dataclass(frozen=True, slots=True)
class Waited:
    seconds: float  # for a slot to embed the question


class Reached:
    """What the stages of one request have returned so far. Results are added, and none is ever changed."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._results: list[object] = []

    def add(self, result: T) -> T:
        self._results.append(result)
        return result

    def latest(self, kind: type[T]) -> T | None:
        """The newest result of this kind; None before there is one."""
        return next((one for one in reversed(self._results) if isinstance(one, kind)), None)

    def timings(self) -> list[StageTiming]:
        """Of the stages that have ended, by the event loop's time."""
        return [one for one in self._results if isinstance(one, StageTiming)]

    def timings_ms(self) -> dict[str, float]:
        """For a receipt."""
        waited = self.latest(Waited)
        wait = {} if waited is None else {"wait": waited.seconds * 1000}
        return wait | {one.name: one.took * 1000 for one in self.timings()}

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """The duration of a stage, even one that the deadline ends; uvloop's own time has whole milliseconds."""
        began_at, began = asyncio.get_running_loop().time(), perf_counter()
        try:
            yield
        finally:
            took = perf_counter() - began
            self.add(StageTiming(stage, began_at, took))
            self._metrics.recall_seconds.labels(stage).observe(took)
