"""Computes the keys by which a conversation is recognised when a client sends it again, and the session that a request
names. Pure.

A key is a hash of user, project, agent and all messages up to one of the user's, as the client sends them. System
messages, our notes and tool traffic do not count: clients change or drop them between two requests. An edited message
changes all keys after it; a regenerated answer changes those of later messages.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from memory.chat.completions import ChatRequest
from memory.model import (
    EARLIER_BYTES_MAX,
    EARLIER_EXCHANGES_MAX,
    Conversation,
    Message,
    Role,
    Scope,
    SentConversation,
    SentExchange,
    is_valid_id,
)
from memory.model.exchanges import folded, is_distinctive, words_of

KEY_BYTES = 16


@dataclass(slots=True)
class _Group:
    """The user's messages between two answers, with their keys."""

    said: list[Message] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    answer: str = ""
    is_answered: bool = False
    occurrence: int = 1


def sent_conversation(scope: Scope, request: ChatRequest) -> SentConversation | None:
    """None unless the request has a new user message with text."""
    if request.conversation is None:
        return None
    groups = _groups(scope, request.conversation, held_under=request.chain.held_under)
    if not groups or groups[-1].is_answered or not groups[-1].keys:
        return None
    earlier = [group for group in groups[:-1] if group.keys]
    _count(earlier)
    sent = _bounded(earlier[-EARLIER_EXCHANGES_MAX:])
    return SentConversation(tuple(groups[-1].keys), sent)


def _groups(scope: Scope, conversation: Conversation, *, held_under: str) -> list[_Group]:
    chain = hashlib.blake2b(digest_size=KEY_BYTES)
    _add(chain, scope.user_id, scope.project_id, scope.agent_id, held_under)
    groups: list[_Group] = []
    for message in conversation.messages:
        is_text = bool(message.content.strip()) and not message.is_tool_traffic
        if message.role == Role.USER:
            if not groups or groups[-1].is_answered:
                groups.append(_Group())
            if is_text:
                _add(chain, message.role, message.content)
                groups[-1].said.append(message)
                groups[-1].keys.append(chain.hexdigest())
        elif message.role == Role.ASSISTANT:
            if is_text:
                _add(chain, message.role, message.content)
            if groups:
                groups[-1].is_answered = True
                groups[-1].answer = message.content if is_text else groups[-1].answer
    return groups


def _count(groups: Sequence[_Group]) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for group in groups:
        words = words_of(group.said)
        same = (words, "" if is_distinctive(words) else folded(group.answer))
        counts[same] += 1
        group.occurrence = counts[same]


def _add(chain: hashlib.blake2b, *texts: str) -> None:
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        chain.update(len(encoded).to_bytes(8, "big"))
        chain.update(encoded)


def _bounded(groups: Sequence[_Group]) -> tuple[SentExchange, ...]:
    """The newest texts up to the limit; older exchanges without theirs."""
    room = EARLIER_BYTES_MAX
    exchanges: list[SentExchange] = []
    for group in reversed(groups):
        room -= sum(len(message.content.encode("utf-8", "surrogatepass")) for message in group.said)
        room -= len(group.answer.encode("utf-8", "surrogatepass"))
        said, answer = (tuple(group.said), group.answer) if room >= 0 else ((), "")
        exchanges.append(SentExchange(group.keys[-1], said, answer, group.occurrence))
    return tuple(reversed(exchanges))


@dataclass(frozen=True, slots=True)
class NamedSession:
    """`session_id`: of the turn, if nothing else is known. `is_given`: the client or the server has fixed it.

    `continues`: the name of an earlier exchange, whose session replaces it if that exchange is known; or "".
    """

    session_id: str
    is_given: bool = False
    continues: str = ""


def named_session(scope: Scope, request: ChatRequest, *, turn_id: str) -> NamedSession:
    """In this order: the client's session id; the conversation stored by the server; the session of the response that
    the request continues, hence of the first response of the chain; otherwise a new one, drawn from the turn's id.
    """
    if scope.session_id:
        return NamedSession(scope.session_id, is_given=True, continues="")
    if is_valid_id(request.chain.conversation_id):
        return NamedSession(request.chain.conversation_id, is_given=True)
    return NamedSession(new_session_id(turn_id), continues=request.chain.previous_response_id)


def new_session_id(turn_id: str) -> str:
    return "s-" + hashlib.sha256(turn_id.encode()).hexdigest()[:32]
