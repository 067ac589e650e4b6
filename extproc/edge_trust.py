"""What is believed of what comes with a request: whose it is, what filters ahead say of it, whether memory is off.

Both filters ask with the same headers, so that what is not recalled is not learnt either. A switch is no proof of
anything: it can only take memory away, for recall and learning of this request alone.

The names of signals are a setting. Envoy forwards only those to us, and removes such headers from untrusted clients
(envoy/envoy.yaml), which could otherwise control their own search; clients cannot set metadata. Only names in a rule
are read; memory/recall/signals/upstream.py interprets the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from extproc.identity import (
    USUAL_RULES,
    Anonymous,
    Headers,
    IdentityMode,
    IdentityRules,
    Metadata,
    RefusedIdentity,
    first_header,
    identify,
)
from memory.chat.completions import ChatRequest
from memory.chat.envelopes import KNOWN, Envelopes
from memory.model import Scope
from memory.model.zones import UTC_ZONES, Zones
from memory.recall.signals.upstream import DEFAULT_RULES, NO_SIGNALS, UpstreamRule, UpstreamSignals, read_upstream
from memory.settings import OffRoute, UpstreamSignal

MEMORY_HEADER = "x-memory"  # of a client, or of a proxy or filter ahead: "on" changes nothing, all else switches off
ON = frozenset({b"on", b""})
BETWEEN = ":"  # between namespace and key; not allowed in header names


class SignalReader:
    """The rules, and the names that they use: `headers` in lower case, `namespaces` of dynamic metadata."""

    def __init__(self, rules: tuple[UpstreamRule, ...] = DEFAULT_RULES) -> None:
        self.rules = rules
        names = sorted({rule.name for rule in rules})
        self.headers = tuple(name for name in names if BETWEEN not in name)
        self._keys = tuple((name, *name.split(BETWEEN, 1)) for name in names if BETWEEN in name)
        self.namespaces = tuple(sorted({namespace for _, namespace, _ in self._keys}))

    def read_signals(self, headers: Headers, metadata: Metadata) -> UpstreamSignals:
        """The signals of a request with these headers and metadata. Never raises."""
        said = self._said_in_headers(headers) | self._said_in_metadata(metadata)
        return read_upstream(said, self.rules) if said else NO_SIGNALS

    def _said_in_headers(self, headers: Headers) -> dict[str, str]:
        """A header that occurs several times is one comma-separated list, as in HTTP."""
        said: dict[str, str] = {}
        for name, value in headers:
            if name in self.headers:
                text = value.decode("latin-1")
                said[name] = f"{said[name]},{text}" if name in said else text
        return said

    def _said_in_metadata(self, metadata: Metadata) -> dict[str, str]:
        found = ((name, _as_text(metadata.get(space, {}).get(key))) for name, space, key in self._keys)
        return {name: text for name, text in found if text}


def signal_reader(signals: Sequence[UpstreamSignal] | None) -> SignalReader:
    """The reader for a setting; None means the built-in rules, an empty list no signals."""
    if signals is None:
        return SignalReader()
    return SignalReader(tuple(_rule(signal) for signal in signals))


def _rule(signal: UpstreamSignal) -> UpstreamRule:
    name = signal.name if BETWEEN in signal.name else signal.name.lower()
    return UpstreamRule(name, tuple(value.strip().casefold() for value in signal.values), signal.means)


def _as_text(value: object) -> str:
    """A metadata value in the form of a header; "" for one that no rule can match."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(one for one in value if isinstance(one, str))
    return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class EdgeTrust:
    """`off_routes`: without memory. `envelopes`: of clients, around what a user typed. `zones`: of users."""

    identity_mode: IdentityMode
    signals: SignalReader = field(default_factory=SignalReader)
    rules: IdentityRules = USUAL_RULES
    rejects_mismatches: bool = False  # the upstream does not get requests that contradict the edge
    off_routes: Sequence[OffRoute] = ()
    envelopes: Envelopes = KNOWN
    zones: Zones = UTC_ZONES
    secret: str = ""  # which calls must bring; "": none
    slots: int = 10_000  # how many chats Envoy lets in at a time

    def scope_of(self, headers: Headers, request: ChatRequest) -> Scope | RefusedIdentity | Anonymous:
        return identify(headers, request.context, self.identity_mode, request.named_user, self.rules)


def switched_off(headers: Headers, routes: Sequence[OffRoute]) -> str:
    """Why memory is off for this request, as a metric label; "" if it is not."""
    if any(value.strip().lower() not in ON for name, value in headers if name == MEMORY_HEADER):
        return "header_off"
    authority, path = first_header(headers, ":authority"), first_header(headers, ":path").partition("?")[0]
    return "route_off" if any(route.matches(authority, path) for route in routes) else ""
