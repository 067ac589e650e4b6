"""What the domain needs from the world: small protocols, each with its guarantees and its errors.

Every port has one contract suite in `tests/contracts/` that runs on every adapter. Every call is bounded in time by the
adapter's own time-out and raises `Unavailable` past it; a cancelled call leaves nothing half done.
"""

from __future__ import annotations

from memory.ports.chains import ResponseChains
from memory.ports.models import ChatModel, Clock, Completion, Embedder, Tokens
from memory.ports.reading import (
    ExamKey,
    ExamResult,
    ExamResults,
    PairRelation,
    PairVerdict,
    StatementPair,
    StatementReader,
)
from memory.ports.reembedding import Reembedding, Standing, StoredText
from memory.ports.requests import ChatTemplates, ModelTraits, NoteBook, Receipts
from memory.ports.snapshots import Snapshots
from memory.ports.stores import (
    LedgerWrite,
    MemoryFilter,
    MemoryStore,
    Nearby,
    Page,
    Revision,
    UserLedger,
    UserMemories,
)
from memory.ports.turns import Backlog, DeadLetter, FreshTurn, LearnDue, Lease, Order, QueueDepth, TurnLog
from memory.ports.upkeep import Rounds, Use, Uses

__all__ = [
    "Backlog",
    "ChatModel",
    "ChatTemplates",
    "Clock",
    "Completion",
    "DeadLetter",
    "Embedder",
    "ExamKey",
    "ExamResult",
    "ExamResults",
    "FreshTurn",
    "LearnDue",
    "Lease",
    "LedgerWrite",
    "MemoryFilter",
    "MemoryStore",
    "ModelTraits",
    "Nearby",
    "NoteBook",
    "Order",
    "Page",
    "PairRelation",
    "PairVerdict",
    "QueueDepth",
    "Receipts",
    "Reembedding",
    "ResponseChains",
    "Revision",
    "Rounds",
    "Snapshots",
    "Standing",
    "StatementPair",
    "StatementReader",
    "StoredText",
    "Tokens",
    "TurnLog",
    "Use",
    "UserLedger",
    "UserMemories",
    "Uses",
]
