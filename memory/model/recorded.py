"""The messages of the conversation record: who said what to whom, in one deterministic order.

Pure. Most messages are derived from turns: each user message goes from the user to the assistant, the answer from the
assistant to the user, with tool calls and their results in between. The assistant is the agent that the request names,
otherwise the model. Messages that the proxy does not see are added by the application.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from memory.errors import BadInput
from memory.model.chats import Role
from memory.model.identity import Scope
from memory.model.turns import Turn

TRACE_CHARACTERS_MAX = 256  # of a trace id; a W3C one has 32
NAME_CHARACTERS_MAX = 256  # of a party's name: a model or tool name may be anything, an agent id is checked like others
TOOLS_ORDINAL = 1_000  # a turn has at most so many user messages; tool traffic comes after them …
ANSWER_ORDINAL = 1_000_000_000  # … and before the answer
ADDED_SEQ = 1 << 62  # of messages that belong to no turn: after the turns of the same time
ID_OF_TURN = "turn:"  # how the ids of derived messages begin, and no added ones
REMOVED = ""  # role of a user message that was deleted from its turn; the others keep their ids


class PartyType(StrEnum):
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    KNOWLEDGE = "knowledge"
    MODEL = "model"


class MessageDirection(StrEnum):
    """Seen from the assistant: an input to it, or its output."""

    INPUT = "input"
    OUTPUT = "output"


class Visibility(StrEnum):
    """Which agents of the user may read a message that they neither said nor received: none, or all."""

    AGENT = "agent"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Party:
    """One end of a message. `name`: the id of a user or agent, the name of a tool, model or source; may be ""."""

    type: PartyType
    name: str = ""

    def __post_init__(self) -> None:
        if len(self.name) > NAME_CHARACTERS_MAX:
            raise BadInput(f"the name of a party may have {NAME_CHARACTERS_MAX} characters")


Position: TypeAlias = tuple[float, int, int]
"""`(at, seq, ordinal)`: time, order of arrival, and order within a turn. Positions of one user are unique."""


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """`at` is in Unix seconds. `turn_id`: the turn that it is part of, or "". `seq`, `ordinal`: see `Position`."""

    id: str
    conversation_id: str
    source: Party
    target: Party
    direction: MessageDirection
    content: str
    at: float
    trace_id: str = ""
    project_id: str = ""
    turn_id: str = ""
    visibility: Visibility = Visibility.USER
    seq: int = ADDED_SEQ
    ordinal: int = 0

    def __post_init__(self) -> None:
        if not self.conversation_id:
            raise BadInput("a message needs a conversation_id")
        if len(self.trace_id) > TRACE_CHARACTERS_MAX:
            raise BadInput(f"trace_id may have {TRACE_CHARACTERS_MAX} characters")

    @property
    def position(self) -> Position:
        return (self.at, self.seq, self.ordinal)

    def is_seen_by(self, agent_id: str, *, with_shared: bool = False) -> bool:
        """Whether that agent said or received it, or, `with_shared`, may read what others said."""
        is_own = Party(PartyType.AGENT, agent_id) in (self.source, self.target)
        return is_own or (with_shared and self.visibility is Visibility.USER)


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Which messages of one user; an empty field admits all.

    `agent_id`: what that agent said or received, and with `with_shared` also messages of others whose visibility
    allows it. `words`: the content contains all of them, whatever the case. `only_live`: nothing of abandoned branches.
    """

    user_id: str
    conversation_id: str = ""
    trace_id: str = ""
    agent_id: str = ""
    with_shared: bool = False
    words: tuple[str, ...] = ()
    only_live: bool = False

    def __post_init__(self) -> None:
        Scope(self.user_id, session_id=self.conversation_id, agent_id=self.agent_id)  # refuses invalid ids


def messages_of_turn(turn: Turn, *, seq: int) -> list[RecordedMessage]:
    """The user's messages and the answer of a turn. Deleted and empty ones are left out; the ids of others stay."""
    said = [
        _part(turn, seq, ordinal, content=message.content, is_output=message.role == Role.ASSISTANT)
        for ordinal, message in enumerate(turn.messages[:TOOLS_ORDINAL])
        if message.role in (Role.USER, Role.ASSISTANT) and message.content
    ]
    answers = [_part(turn, seq, ANSWER_ORDINAL, content=turn.answer, is_output=True)] if turn.answer else []
    return said + answers


def assistant_of(turn: Turn) -> Party:
    """The agent that the request named, otherwise the model."""
    if turn.scope.agent_id:
        return Party(PartyType.AGENT, turn.scope.agent_id)
    return Party(PartyType.MODEL, turn.model[:NAME_CHARACTERS_MAX])


def _part(turn: Turn, seq: int, ordinal: int, *, content: str, is_output: bool) -> RecordedMessage:
    user, assistant = Party(PartyType.USER, turn.scope.user_id), assistant_of(turn)
    is_answer = ordinal == ANSWER_ORDINAL
    return RecordedMessage(
        id=part_id(turn.id, ordinal),
        conversation_id=turn.scope.session_id,
        source=assistant if is_output else user,
        target=user if is_output else assistant,
        direction=MessageDirection.OUTPUT if is_output else MessageDirection.INPUT,
        content=content,
        at=turn.answered_at if is_answer and turn.answered_at is not None else turn.at,
        trace_id=turn.trace_id[:TRACE_CHARACTERS_MAX],
        project_id=turn.scope.project_id,
        turn_id=turn.id,
        seq=seq,
        ordinal=ordinal,
    )


def part_id(turn_id: str, ordinal: int) -> str:
    return f"{ID_OF_TURN}{turn_id}:{'answer' if ordinal == ANSWER_ORDINAL else ordinal}"


def part_of(message_id: str) -> tuple[str, int] | None:
    """The turn and ordinal in the id of a derived message; None for any other id."""
    turn_id, _, ordinal = message_id.removeprefix(ID_OF_TURN).rpartition(":")
    if not (message_id.startswith(ID_OF_TURN) and turn_id):
        return None
    if ordinal == "answer":
        return turn_id, ANSWER_ORDINAL
    return (turn_id, int(ordinal)) if ordinal.isascii() and ordinal.isdigit() and len(ordinal) < 10 else None


def shortened(text: str, characters_max: int) -> str:
    """The beginning of a long text with a mark that says how long it was; at most `characters_max` characters.

    Shortening again with the same limit changes nothing.
    """
    if len(text) <= characters_max:
        return text
    mark = f" … [shortened from {len(text)} characters]"
    return text[: max(0, characters_max - len(mark))] + mark[-characters_max:]


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """A tool call of the assistant, or its result (`is_result`), as a client sent it back. `call_id` may be ""."""

    name: str
    content: str
    call_id: str = ""
    is_result: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """What the record holds of one conversation. `title`: the beginning of its first user message.

    `is_answering`: a reply is under way. `unlearnt_turns`: turns that are not learnt yet.
    """

    id: str
    first_at: float
    last_at: float
    turns: int
    messages_added: int
    agent_ids: tuple[str, ...]
    is_answering: bool
    unlearnt_turns: int
    title: str = ""


@dataclass(frozen=True, slots=True)
class AbandonedBranch:
    """Turns that a conversation no longer continues from, because one was edited or regenerated.

    `left_after`: the live turn that it continued, "" at the beginning; `left_at`: how many live turns there are up to
    that one, None if it is deleted or abandoned as well. `turn_ids`: its turns, oldest first; `begun_at`: Unix seconds;
    `title`: the beginning of its first user message.
    """

    left_after: str
    left_at: int | None
    turn_ids: tuple[str, ...]
    begun_at: float
    title: str = ""
