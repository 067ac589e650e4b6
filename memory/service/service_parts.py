"""What the services of one library have in common."""

from __future__ import annotations

from typing import Protocol

from memory.ports import ConversationRecord, MemoryBank, RequestStores, TurnRecording, TurnTriage
from memory.service.erasure import Erasure
from memory.service.requests import Intake
from memory.service.user_writes import OptOutService, UserWrites


class LibraryTurns(TurnRecording, TurnTriage, ConversationRecord, Protocol):
    """The part of the turn log that the library uses: it appends and reads turns, and manages the waiting ones."""


class ServiceParts:
    """Ports, and what all writes go through."""

    def __init__(self, memories: MemoryBank, turn_log: LibraryTurns, stores: RequestStores, intake: Intake) -> None:
        self.memories = memories
        self.turn_log = turn_log
        self.stores = stores
        self.intake = intake
        self.erasure = Erasure(memories=memories, turn_log=turn_log, stores=stores, clock=intake.clock)
        self.opt_outs = OptOutService(opt_outs=stores.opt_outs, ledger=memories.ledger, clock=intake.clock)
        self.writes = UserWrites(memories.ledger, self.opt_outs)
