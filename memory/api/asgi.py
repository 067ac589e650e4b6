"""What an application is to a server, as plainly as ASGI says it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

AsgiScope: TypeAlias = MutableMapping[str, Any]
AsgiMessage: TypeAlias = MutableMapping[str, Any]
AsgiReceive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
AsgiSend: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[AsgiScope, AsgiReceive, AsgiSend], Awaitable[None]]
