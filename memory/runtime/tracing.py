"""The port for traces: spans of what a process does for a chat or a window of turns, in the sense of OpenTelemetry. And
what parts are handed to trace with, beside their clock and metrics.

No span ever carries content, or anything that identifies a user: names of spans and attributes are listed here, and an
attribute is a number, a truth value or a short label. A tracer never fails what it traces, and never waits for the
network. Without `tracing.endpoint` there is `NO_TRACER`, which does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_lowercase, digits
from typing import Protocol, TypeAlias

from memory.runtime.metrics import Metrics

LABEL_CHARACTERS_MAX = 64  # a receipt id has 36
LABEL_CHARACTERS = frozenset(f"{ascii_lowercase}{digits}_-")
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"))
UNMATCHED = "unmatched"  # in place of the route of calls that no path of ours matches, or that are refused before
OTHER_METHOD = "_OTHER"  # OpenTelemetry's, for methods that a client invented

AttributeValue: TypeAlias = str | int | float | bool


class SpanName(StrEnum):
    """Every span that we make. Stages of recall are spans of their own, named `recall.` and the stage; calls of the API
    are named by `ServedCall`.
    """

    INJECT = "memory.inject"
    RECALL = "memory.recall"
    EMBED = "recall.embed"  # of searches of the API; a chat's are stages
    RETRIEVE = "recall.retrieve"
    OBSERVE = "memory.observe"
    OPEN_TURN = "turn.open"
    CLOSE_TURN = "turn.close"
    APPEND_TURN = "turn.append"
    LEARN = "memory.learn"
    READ_WINDOW = "learn.read"
    APPLY_WINDOW = "learn.apply"


ATTRIBUTES = frozenset({"status", "reason", "memories", "receipt_id", "compacted", "outcome", "turns", "attempt"})
"""Names of attributes, exported with `memproxy.` before them."""


@dataclass(frozen=True, slots=True)
class StageTiming:
    """One stage that has ended. `began_at`: Unix seconds; `took`: seconds."""

    name: str
    began_at: float
    took: float


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """The trace in which a turn was opened; `trace_id` is any text, since clients may name one of their own."""

    turn_id: str
    trace_id: str


@dataclass(frozen=True, slots=True)
class ServedCall:
    """A request to the API and the status of its answer. `route`: the template of its path; "" if none matched."""

    method: str
    route: str
    code: int

    def name(self) -> str:
        """By OpenTelemetry's conventions; a method that a client invented is not repeated."""
        method = self.method if self.method in METHODS else "HTTP"
        return f"{method} {self.route or UNMATCHED}"

    def attributes(self) -> dict[str, AttributeValue]:
        method = self.method if self.method in METHODS else OTHER_METHOD
        found: dict[str, AttributeValue] = {"http.request.method": method, "http.response.status_code": self.code}
        if self.route:
            found["http.route"] = self.route
        if self.is_error():
            found["error.type"] = str(self.code)
        return found

    def is_error(self) -> bool:
        """What a client did wrong is no error of the server."""
        return self.code >= 500


class Tracer(Protocol):
    """Spans of one process, nested by the task that makes them. Nothing here raises, or waits for the network."""

    def span(
        self, name: SpanName, *, parent: str = "", of_turn: str = "", links: Sequence[TurnTrace] = ()
    ) -> AbstractContextManager[None]:
        """A span around the body, inside the current one.

        `parent`: a W3C `traceparent`, in place of the current span; one that is malformed is ignored. `of_turn`: the id
        of the turn whose opening this is; `links`: turns that were opened elsewhere, of which those without a W3C trace
        id are left out. An error that passes marks the span with its type alone.
        """

    def served(self, *, parent: str = "") -> AbstractContextManager[Callable[[ServedCall], None]]:
        """A span of kind server around the answer to a call of the API, with `parent` as in `span`.

        Call what it yields before the body ends: it names the span, since the route is known late.
        """

    def note(self, **attributes: AttributeValue) -> None:
        """Attributes of the current span. Those that `safe_attributes` refuses are left out."""

    def stages(self, stages: Sequence[StageTiming]) -> None:
        """Stages of the current span, each as a span of its own."""

    def trace_id(self) -> str:
        """Of the current span, in hexadecimal; "" if it is not exported."""


class NoTracer:
    """Traces are off."""

    @contextmanager
    def span(
        self, name: SpanName, *, parent: str = "", of_turn: str = "", links: Sequence[TurnTrace] = ()
    ) -> Iterator[None]:
        yield

    @contextmanager
    def served(self, *, parent: str = "") -> Iterator[Callable[[ServedCall], None]]:
        yield lambda _call: None

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


def no_jitter() -> float:
    """Whoever retries waits as long as they may."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a part tells the time by, counts and traces with, and spreads its retries by: handed in, never fetched.

    `clock` shows Unix seconds; `jitter` draws a number in 0..1.
    """

    clock: Callable[[], float]
    metrics: Metrics
    jitter: Callable[[], float] = no_jitter
    tracer: Tracer = NO_TRACER
