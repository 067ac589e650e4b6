"""A process that is frozen in the middle of a call to one of its parts, and wakes when others have done their work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from memory.adapters.in_memory import InMemoryStore


class Frozen:
    """A part whose n-th call of one name comes late: somebody else gets all their work done before it takes effect.

    `is_sending`: a write is frozen between the last look at the clock and the wire, where nobody can see it.
    """

    def __init__(
        self,
        part: Any,
        name: str,
        meanwhile: Callable[[], Awaitable[None]],
        *,
        number: int = 1,
        is_sending: bool = False,
    ) -> None:
        self._part = part
        self._name = name
        self._meanwhile = meanwhile
        self._calls_before = number
        self._is_sending = is_sending
        self.has_arrived = False

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._part, name)
        if name != self._name:
            return attribute

        async def late(*arguments: Any, **options: Any) -> Any:
            self._calls_before -= 1
            if self._calls_before != 0:
                return await attribute(*arguments, **options)
            if self._is_sending:
                options.pop("before_each")()
            await self._meanwhile()
            result = await attribute(*arguments, **options)
            self.has_arrived = True
            return result

        return late


class OnTheWire:
    """A store whose first write, of a process that dies of `error` while it sends, arrives after the next one."""

    def __init__(self, store: InMemoryStore, error: BaseException) -> None:
        self._store = store
        self._error: BaseException | None = error
        self._sent: list[Callable[[], Awaitable[None]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def apply(self, *arguments: Any, **options: Any) -> None:
        error, self._error = self._error, None
        if error is not None:
            options.pop("before_each")()
            self._sent.append(partial(self._store.apply, *arguments))
            raise error
        await self._store.apply(*arguments, **options)
        while self._sent:
            await self._sent.pop()()
