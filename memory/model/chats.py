"""The content and options of a chat request, and the context window of its model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory.model.claim_filters import ANY_CLAIM, ClaimFilter

HEAVY_BODY_BYTES = 256 << 10  # of a body: parsing or hashing its messages takes a millisecond, and holds up other chats
CHAT_BYTES_MAX = 32 << 20  # of a request's body: read, recorded and hashed (70 ms); a larger one is passed on as it is


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One message as text; images, audio and other parts are left out."""

    role: str  # one of Role, or whatever else the client sent ("developer")
    content: str
    is_tool_traffic: bool = False  # a tool call of the assistant, or a tool's result
    name: str = ""  # of who wrote it, where the client says so


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a request, in order; never empty. `is_of_client`: a client asks, for itself, not the user."""

    messages: tuple[Message, ...]
    model: str = ""
    offers_tools: bool = False
    is_of_client: bool = False

    def last_user_text(self) -> str:
        """The text of the last user message, or "" where there is none."""
        return next((m.content for m in reversed(self.messages) if m.role == Role.USER), "")

    def new_user_messages(self) -> tuple[Message, ...]:
        """The user messages after the last assistant message, which this request adds to the record."""
        fresh: list[Message] = []
        for message in reversed(self.messages):
            if message.role == Role.ASSISTANT:
                break
            if message.role == Role.USER:
                fresh.append(message)
        return tuple(reversed(fresh))


class Placement(StrEnum):
    """Where the note is placed: in the first system message, right before the last user message, or nowhere."""

    SYSTEM = "system"
    BEFORE_LAST_USER = "before_last_user"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """`memory_config` of one request. None means "as configured". `claim`: of callers of the API, not of chats."""

    enabled: bool = True
    auto_store: bool = True
    memory_types: tuple[str, ...] = ()
    retrieval_limit: int | None = None
    similarity_threshold: float | None = None
    token_budget: int | None = None
    placement: Placement | None = None
    profile: bool | None = None
    compact: bool | None = None
    claim: ClaimFilter = ANY_CLAIM


@dataclass(frozen=True, slots=True)
class ModelWindow:
    """`tokens`: of prompt and answer together. `per_estimate`: tokens of this model per token that we estimate."""

    tokens: int
    per_estimate: float = 1.0

    def __post_init__(self) -> None:
        assert self.tokens > 0
        assert self.per_estimate > 0
