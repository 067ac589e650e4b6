"""What an operator needs to know of a failed call. Only of connections: an error of a command may quote it, and so a
user.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Final

from redis import exceptions

OF_A_CHANGING_CLUSTER = (exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError)  # and MovedError
CLOSED = "Connection closed by server"  # how redis-py words it
IS_NO_CLUSTER: Final = "redis_url: this is a single server, no cluster: leave out +cluster, as in redis://HOST:PORT"
IS_A_CLUSTER: Final = (
    "redis_url: this server is a node of a cluster: write redis+cluster://HOST:PORT, without a database"
)
NO_DATABASE: Final = "redis_url: the server has no database of that number: leave it out (a cluster has 0 only)"
MISTAKES_IN_URLS: Final = {  # by how Redis and Valkey word that they refuse it
    "cluster support disabled": IS_NO_CLUSTER,
    "SELECT is not allowed in cluster mode": IS_A_CLUSTER,
    "DB index is out of range": NO_DATABASE,
}


class NodeIsFull(exceptions.OutOfMemoryError):
    """`node`: the one of a cluster that refused the write, by its name."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self.node = node


def reason_of(error: BaseException) -> str:
    """Its kind; where TLS failed, why."""
    if is_full(error):
        return "it has no memory left (maxmemory)"
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is refused ({cause.verify_message}): see memory.redis.certificate_authority"
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({cause.reason})"
    return type(error).__name__


def is_full(error: BaseException | None) -> bool:
    """Whether the server refused a write at its `maxmemory`. Of a script, nothing was executed then."""
    return any(isinstance(cause, exceptions.OutOfMemoryError) for cause in _causes(error))


def full_node(error: BaseException) -> str:
    """Which node of a cluster refused it; empty where there is only one server."""
    return next((cause.node for cause in _causes(error) if isinstance(cause, NodeIsFull)), "")


def is_refused(error: BaseException) -> bool:
    """Whether a server refuses the command, rather than being away, full, not what `redis_url` says, or not the one
    that serves the key now.
    """
    passing = (*OF_A_CHANGING_CLUSTER, exceptions.ReadOnlyError, exceptions.OutOfMemoryError)
    cause = error.__context__
    is_response = isinstance(cause, exceptions.ResponseError) and not isinstance(cause, passing)
    return is_response and not mistake_in_url(error)


def mistake_in_url(error: BaseException) -> str:
    """What to change in `redis_url`; empty where that is not why the call failed."""
    for cause in _causes(error):
        for words, mistake in MISTAKES_IN_URLS.items():
            if words in str(cause):
                return mistake
    return ""


def was_closed(error: BaseException) -> bool:
    """Whether the server closed the connection, as a port for TLS does with one without."""
    return any(
        isinstance(one, ConnectionResetError) or (isinstance(one, exceptions.ConnectionError) and CLOSED in str(one))
        for one in _causes(error)
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
