"""The ports of the domain: small protocols, each with its guarantees and errors.

Every port has one contract suite in `tests/contracts/` that runs on every adapter. Every call has a time limit of its
adapter and raises `Unavailable` beyond it; a cancelled call leaves nothing half done.
"""

from __future__ import annotations

from memory.ports.conversation_trees import ConversationTrees, RecordingTimes, ResponseChains
from memory.ports.erasures import OptOuts
from memory.ports.models import ChatModel, Clock, Completion, Embedder, ModelWindows, Tokens, WindowSource
from memory.ports.paging import Page
from memory.ports.profiles import Profiles
from memory.ports.reading import (
    FactContext,
    FrameKind,
    FrameMark,
    OrderReach,
    PairRelation,
    PairVerdict,
    ReadyReader,
    StatementPair,
    StatementReader,
)
from memory.ports.recorded import RecordCopies, RecordedMessages, RemovedWords, Trimming
from memory.ports.reembedding import Outdated, Reembedding, ReembeddingStatus, StoredText
from memory.ports.requests import (
    ChatState,
    ChatStateQuery,
    ChatStates,
    ChatTemplates,
    CompactedStates,
    ModelCapabilities,
    NoteBook,
    Receipts,
    RequestStores,
    ResentHistory,
)
from memory.ports.stores import (
    LedgerWrite,
    MemoryBank,
    MemoryFilter,
    MemoryLookup,
    MemoryStore,
    Revision,
    Snapshots,
    UserLedger,
)
from memory.ports.summaries import SessionSummaries, SummaryQueue
from memory.ports.turn_log import (
    Backlog,
    ConversationRecord,
    DeadLetter,
    ForgetRequestTurn,
    FreshTurn,
    LearnDue,
    Lease,
    QueueDepth,
    TurnLog,
    TurnRecording,
    TurnTriage,
    WindowLeases,
)
from memory.ports.upkeep import UpkeepSchedule, UsageCount
