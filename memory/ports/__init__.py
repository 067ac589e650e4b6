"""The ports of the domain: small protocols, each with its guarantees and errors.

Every port has one contract suite in `tests/contracts/` that runs on every adapter. Every call has a time limit of its
adapter and raises `Unavailable` beyond it; a cancelled call leaves nothing half done.
"""

from __future__ import annotations

from memory.ports.chains import ResponseChains
from memory.ports.chat_states import ChatState, ChatStateQuery, ChatStates
from memory.ports.compaction import CompactedStates, ResentHistory
from memory.ports.conversation_trees import ConversationTrees
from memory.ports.models import ChatModel, Clock, Completion, Embedder, Tokens
from memory.ports.opt_outs import NoOptOuts, OptOuts
from memory.ports.profiles import Profiles
from memory.ports.reading import (
    ExamKey,
    ExamResult,
    ExamResults,
    FactContext,
    FrameKind,
    FrameMark,
    PairRelation,
    PairVerdict,
    ReadyReader,
    StatementPair,
    StatementReader,
)
from memory.ports.record_copies import RecordCopies
from memory.ports.recorded import MessagePage, RecordedMessages, SessionPage, Trimming
from memory.ports.recording_times import RecordingTimes
from memory.ports.reembedding import Outdated, Reembedding, ReembeddingStatus, StoredText
from memory.ports.removed_words import RemovedWords
from memory.ports.requests import (
    ChatTemplates,
    ModelCapabilities,
    NoteBook,
    ReceiptPage,
    Receipts,
    RequestStores,
    ServerKnowledge,
)
from memory.ports.snapshots import Snapshots
from memory.ports.stores import (
    LedgerWrite,
    MemoryBank,
    MemoryFilter,
    MemoryLookup,
    MemoryStore,
    NoLocalMemories,
    Page,
    Revision,
    UserLedger,
    UserMemories,
)
from memory.ports.summaries import NoSummaries, SessionSummaries, SummaryQueue
from memory.ports.turn_log import ConversationRecord, TurnLog, TurnRecording, TurnTriage, WindowLeases
from memory.ports.turns import Backlog, DeadLetter, ForgetRequestTurn, FreshTurn, LearnDue, Lease, QueueDepth
from memory.ports.upkeep import UpkeepSchedule, UsageCount, UsageCounts
from memory.ports.windows import ModelWindows, WindowSource
