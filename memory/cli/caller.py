"""How commands that call the API identify themselves: the user, and what proves that they may speak for that user."""

from __future__ import annotations

from memory.model import Scope
from memory.settings import Settings

HOW_TO_IDENTIFY = "set MEMPROXY_TOKEN to a service token that service_tokens allows; `memproxy token` makes one"


def caller_headers(settings: Settings, user: str) -> list[tuple[bytes, bytes]]:
    """Raises `BadInput` for an id that no header can carry."""
    headers = [(b"x-authz-user-id", Scope(user).user_id.encode())]
    if settings.token:
        headers.append((b"authorization", b"Bearer " + settings.token.encode()))
    elif settings.edge_secret:  # of an API that runs alone, and was given the same one
        headers.append((b"x-memory-edge-secret", settings.edge_secret.encode()))
    return headers
