"""What the services of one library have in common."""

from __future__ import annotations

from memory.ports import MemoryBank, RequestStores, TurnLog
from memory.service.erasure import Erasure
from memory.service.requests import Intake
from memory.service.user_writes import OptOutService, UserWrites


class ServiceParts:
    """Ports, and what all writes go through."""

    def __init__(self, memories: MemoryBank, turn_log: TurnLog, stores: RequestStores, intake: Intake) -> None:
        self.memories = memories
        self.turn_log = turn_log
        self.stores = stores
        self.intake = intake
        self.erasure = Erasure(memories=memories, turn_log=turn_log, stores=stores, clock=intake.clock)
        self.opt_outs = OptOutService(opt_outs=stores.opt_outs, ledger=memories.ledger, clock=intake.clock)
        self.writes = UserWrites(memories.ledger, self.opt_outs)


class Service:
    """What nearly every service of a library uses, taken out of the parts once."""

    def __init__(self, parts: ServiceParts) -> None:
        self._store = parts.memories.store
        self._ledger = parts.memories.ledger
        self._embedder = parts.memories.embedder
        self._erasure = parts.erasure
        self._writes = parts.writes
        self._intake = parts.intake
        self._clock = parts.intake.clock
