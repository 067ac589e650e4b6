"""What the filter believes of a request, from the settings."""

from __future__ import annotations

from dataclasses import dataclass

from extproc.identity import USUAL_RULES, IdentityMode, IdentityRules
from extproc.switches import USUAL_REQUESTS, RequestRules
from extproc.upstream_signals import SignalReader, signal_reader
from memory.chat.envelopes import Envelopes
from memory.model.web_pages import TrustedPages
from memory.model.zones import Zones
from memory.processes.from_settings import claim_names
from memory.settings import OffRoute, Settings


@dataclass(frozen=True, slots=True)
class EdgeTrust:
    """What is believed of what comes with a request: whose it is, and what filters ahead say of it."""

    identity_mode: IdentityMode
    signals: SignalReader
    rules: IdentityRules = USUAL_RULES
    rejects_mismatches: bool = False  # envoy.yaml then permits the filter to answer
    requests: RequestRules = USUAL_REQUESTS
    secret: str = ""  # which calls must bring; "": none
    slots: int = 10_000  # how many chats Envoy lets in at a time


def edge_trust(settings: Settings) -> EdgeTrust:
    return EdgeTrust(
        IdentityMode(settings.identity),
        signal_reader(settings.memory.upstream_signals),
        IdentityRules(claim_names(settings), TrustedPages(settings.memory.identity.trusted_origins)),
        rejects_mismatches=settings.memory.identity.on_mismatch == "reject",
        requests=RequestRules(
            tuple(map(OffRoute.parsed, settings.memory.off_routes)),
            Envelopes.parsed(settings.memory.envelopes),
            Zones(settings.memory.timezone),
        ),
        slots=settings.memory.filter_in_flight_max,
    )
