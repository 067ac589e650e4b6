"""The port for traces: spans of what a process does for a chat or a window of turns, in the sense of OpenTelemetry.

No span ever carries content, or anything that identifies a user: names of spans and attributes are listed here, and an
attribute is a number, a truth value or a short label. A tracer never fails what it traces, and never waits for the
network. Without `tracing.endpoint` there is `NO_TRACER`, which does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_lowercase, digits
from typing import Protocol, TypeAlias

LABEL_CHARACTERS_MAX = 64  # a receipt id has 36
LABEL_CHARACTERS = frozenset(f"{ascii_lowercase}{digits}_-")

AttributeValue: TypeAlias = str | int | float | bool


class SpanName(StrEnum):
    """Every span that we make. Stages of recall are spans of their own, named `recall.` and the stage."""

    INJECT = "memory.inject"
    RECALL = "memory.recall"
    OBSERVE = "memory.observe"
    OPEN_TURN = "turn.open"
    CLOSE_TURN = "turn.close"
    LEARN = "memory.learn"
    READ_WINDOW = "learn.read"
    APPLY_WINDOW = "learn.apply"


ATTRIBUTES = frozenset(
    {
        "status",
        "reason",
        "memories",
        "receipt_id",
        "compacted",
        "outcome",
        "turns",
        "attempt",
    }
)
"""Names of attributes, exported with `memproxy.` before them."""


@dataclass(frozen=True, slots=True)
class StageTiming:
    """One stage that has ended. `began_at`: Unix seconds; `took`: seconds."""

    name: str
    began_at: float
    took: float


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """The trace in which a turn was observed; `trace_id` is any text, since clients may name one of their own."""

    turn_id: str
    trace_id: str


class TracedTurn(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def trace_id(self) -> str: ...


def linked(turns: Sequence[TracedTurn]) -> list[TurnTrace]:
    """The traces of these turns, for `links`."""
    return [TurnTrace(turn.id, turn.trace_id) for turn in turns]


class Tracer(Protocol):
    """Spans of one process, nested by the task that makes them. Nothing here raises, or waits for the network."""

    def span(
        self, name: SpanName, *, parent: str = "", of_turn: str = "", links: Sequence[TurnTrace] = ()
    ) -> AbstractContextManager[None]:
        """A span around the body, inside the current one.

        `parent`: a W3C `traceparent`, in place of the current span; one that is malformed is ignored. `of_turn`: the id
        of the turn whose observation this is; `links`: turns that were observed elsewhere, of which those without a
        W3C trace id are left out. An error that passes marks the span with its type alone.
        """
        ...

    def note(self, **attributes: AttributeValue) -> None:
        """Attributes of the current span. Those that `safe_attributes` refuses are left out."""
        ...

    def stages(self, stages: Sequence[StageTiming]) -> None:
        """Stages of the current span, each as a span of its own."""
        ...

    def trace_id(self) -> str:
        """Of the current span, in hexadecimal; "" if it is not exported."""
        ...


class NoTracer:
    """Traces are off."""

    @contextmanager
    def span(
        self, name: SpanName, *, parent: str = "", of_turn: str = "", links: Sequence[TurnTrace] = ()
    ) -> Iterator[None]:
        yield

    def note(self, **attributes: AttributeValue) -> None:
        return

    def stages(self, stages: Sequence[StageTiming]) -> None:
        return

    def trace_id(self) -> str:
        return ""


NO_TRACER = NoTracer()


def safe_attributes(attributes: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """Those with a listed name, whose value is a number, a truth value or a short label."""
    return {name: value for name, value in attributes.items() if name in ATTRIBUTES and _is_safe(value)}


def _is_safe(value: AttributeValue) -> bool:
    if not isinstance(value, str):
        return True
    return len(value) <= LABEL_CHARACTERS_MAX and LABEL_CHARACTERS.issuperset(value)


__all__ = [
    "NO_TRACER",
    "AttributeValue",
    "NoTracer",
    "SpanName",
    "StageTiming",
    "Tracer",
    "TurnTrace",
    "linked",
    "safe_attributes",
]
