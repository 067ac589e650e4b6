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
from memory.ports.requests import ChatTemplates, ModelTraits, NoteBook, Receipts, RequestTraces, ServerKnowledge
from memory.ports.snapshots import Snapshots
from memory.ports.stores import (
    LedgerWrite,
    MemoryBank,
    MemoryFilter,
    MemoryStore,
    Nearby,
    NothingAtHand,
    Page,
    Revision,
    UserLedger,
    UserMemories,
)
from memory.ports.turn_log import ConversationRecord, TurnLog, TurnRecording, TurnTriage, WindowLeases
from memory.ports.turns import Backlog, DeadLetter, FreshTurn, LearnDue, Lease, Order, QueueDepth
from memory.ports.upkeep import Rounds, Use, Uses

__all__ = [
    "Backlog",
    "ChatModel",
    "ChatTemplates",
    "Clock",
    "Completion",
    "ConversationRecord",
    "DeadLetter",
    "Embedder",
    "ExamKey",
    "ExamResult",
    "ExamResults",
    "FreshTurn",
    "LearnDue",
    "Lease",
    "LedgerWrite",
    "MemoryBank",
    "MemoryFilter",
    "MemoryStore",
    "ModelTraits",
    "Nearby",
    "NoteBook",
    "NothingAtHand",
    "Order",
    "Page",
    "PairRelation",
    "PairVerdict",
    "QueueDepth",
    "Receipts",
    "Reembedding",
    "RequestTraces",
    "ResponseChains",
    "Revision",
    "Rounds",
    "ServerKnowledge",
    "Snapshots",
    "Standing",
    "StatementPair",
    "StatementReader",
    "StoredText",
    "Tokens",
    "TurnLog",
    "TurnRecording",
    "TurnTriage",
    "Use",
    "UserLedger",
    "UserMemories",
    "Uses",
    "WindowLeases",
]
