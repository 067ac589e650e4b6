"""What is believed of what comes with a request: whose it is, what filters ahead say of it, whether memory is off.

Both filters ask with the same headers, so that what is not recalled is not learnt either. A switch is no proof of
anything: it can only take memory away, for recall and learning of this request alone.
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
    RefusedIdentity,
    first_header,
    identify,
)
from extproc.upstream_signals import SignalReader
from memory.chat.completions import ChatRequest
from memory.chat.envelopes import KNOWN, Envelopes
from memory.model import Scope
from memory.model.zones import UTC_ZONES, Zones
from memory.settings.switches import OffRoute

MEMORY_HEADER = "x-memory"  # of a client, or of a proxy or filter ahead: "on" changes nothing, all else switches off
ON = frozenset({b"on", b""})


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
