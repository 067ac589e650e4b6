"""Determines the session of a request. No other module does."""

from __future__ import annotations

from memory.chat.completions import ChatRequest
from memory.model import Scope, derived_session_id, is_valid_id


def session_id_of(scope: Scope, request: ChatRequest) -> tuple[str, str]:
    """The session id, and the name of an earlier exchange whose session replaces it if that exchange is known.

    In this order: the client's session id; the conversation stored by the server; the session of the response that the
    request continues, hence of the first response of the chain; a hash of the conversation's beginning. The name is ""
    if one of the first two applies. `request` has a conversation.
    """
    assert request.conversation is not None
    if scope.session_id:
        return scope.session_id, ""
    if is_valid_id(request.chain.conversation_id):
        return request.chain.conversation_id, ""
    derived = derived_session_id(scope, request.conversation, held_under=request.chain.held_under)
    return derived, request.chain.previous_response_id
