"""The values passed between the stages: frozen, validated on construction, without IO.

Times are Unix seconds (UTC, float). Token counts are estimates in tokens of the packaged encoder. An empty
`project_id`, `session_id` or `agent_id` means "not given"; an empty `user_id` is refused.
"""

from __future__ import annotations

from memory.model.chats import (
    CHAT_BYTES_MAX,
    HEAVY_BODY_BYTES,
    Conversation,
    Message,
    ModelWindow,
    Placement,
    RequestOptions,
    Role,
)
from memory.model.claims import ATTRIBUTES, EXPLICIT_ACTS, ORDERS, STORED_ACTS, Act, Claim, Relation, is_single_valued
from memory.model.compaction import NEEDED, CompactedHistory, CompactedState, HistorySegment, StateItem, StateItemKind
from memory.model.conversation_trees import (
    EARLIER_BYTES_MAX,
    EARLIER_EXCHANGES_MAX,
    NOTE_KEYS_MAX,
    BranchShift,
    BranchTurn,
    ChainLink,
    SentConversation,
    SentExchange,
    link_name,
)
from memory.model.identity import ID_BYTES_MAX, Scope, is_valid_id
from memory.model.memories import (
    CATEGORIES,
    CONTENT_CHARACTERS_MAX,
    MEMORY_TYPES,
    NO_ATTRIBUTE,
    Category,
    Change,
    ChangeKind,
    Evidence,
    Memory,
    MemoryStatus,
    Record,
    Trust,
    Vector,
    statement_key,
)
from memory.model.profiles import Profile, ProfileLine, ProfileText
from memory.model.recalled import (
    Candidate,
    CandidateVerdict,
    CarriedNote,
    Note,
    PastNote,
    Query,
    Question,
    RecallStatus,
    Receipt,
    ReceiptCandidate,
    Selection,
)
from memory.model.recorded import (
    MessageDirection,
    MessageFilter,
    Party,
    PartyType,
    RecordedMessage,
    Session,
    ToolMessage,
    Visibility,
)
from memory.model.summaries import DueSession, SaidTurn, SessionSummary, StoredSummary, WithdrawnSummary
from memory.model.turns import Turn, TurnStatus, Urgency
from memory.model.vectors import VectorOrigin
