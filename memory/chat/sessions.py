"""To which session a request belongs. The one place that says so."""

from __future__ import annotations

from memory.chat.completions import ChatRequest
from memory.model import Scope, derived_session_id, is_valid_id


def session_id_of(scope: Scope, request: ChatRequest) -> tuple[str, str]:
    """The session, and the name of an earlier exchange whose session takes its place where that is known.

    In this order: the id that the client gives; the conversation that the server holds; the session of the response
    that it goes on from, hence of the first one of that chain; a hash of how the conversation begins. The name is ""
    where the first two decide. `request` has a conversation.
    """
    assert request.conversation is not None
    if scope.session_id:
        return scope.session_id, ""
    if is_valid_id(request.chain.conversation_id):
        return request.chain.conversation_id, ""
    return derived_session_id(scope, request.conversation), request.chain.previous_response_id
