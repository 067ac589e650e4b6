"""Determines the session that a request names. What names none is recognised by its messages (`ConversationTrees`)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from memory.chat.completions import ChatRequest
from memory.model import Scope, is_valid_id


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
    """The session that begins with this turn."""
    return "s-" + hashlib.sha256(turn_id.encode()).hexdigest()[:32]
