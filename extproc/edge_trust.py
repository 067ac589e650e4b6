"""What is believed of what comes with a request: whose it is, and what filters ahead say of it.

Both filters ask with the same headers, so that what is not recalled is not learnt either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from extproc.identity import USUAL_RULES, Anonymous, Headers, IdentityMode, IdentityRules, RefusedIdentity, identify
from extproc.upstream_signals import SignalReader
from memory.chat.completions import ChatRequest
from memory.chat.envelopes import KNOWN, Envelopes
from memory.model import Scope
from memory.model.zones import UTC_ZONES, Zones
from memory.settings.switches import OffRoute


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
