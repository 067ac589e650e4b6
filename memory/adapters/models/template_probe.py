"""Asks the upstream for its models, and whether a model's chat template accepts our system messages.

The latter uses what renders a conversation and generates nothing: vLLM's `/tokenize`, where a template that refuses it
gives 400, or llama.cpp's `/apply-template`, where it gives 500. Other servers have no such path, or a different one of
the same name (llama.cpp's `/tokenize` answers 200 without tokens, some answer 400 to any messages): only tokens or a
prompt count as yes, and an error counts as no only if another question gave a yes. No text of users is sent, and no
chat waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import msgspec

from memory.adapters.models.upstream_session import OK, UpstreamSession
from memory.adapters.well_formed import well_formed
from memory.model import Placement
from memory.runtime.recent import Recent

SECONDS_MAX = 2.0  # for all questions about one model; even a busy server tokenizes within milliseconds
REMEMBERED_SECONDS = 60.0  # a refused chat asks again: the model behind a name may have been replaced
MODELS_MAX = 1_000  # cached; clients choose the names
MODEL_CHARACTERS_MAX = 256  # no server has longer names
MODELS_NAMED_MAX = 16  # probed before the first chat; a server with hundreds loads most of them on demand
REFUSED: Final = {"/tokenize": (400,), "/apply-template": (400, 500)}  # where conversations are rendered
IN_FLIGHT_MAX = 4  # concurrent probes: many model names must not become many requests
WAITING_MAX = 100  # waiting probes; further models are not probed

_USER: Final = {"role": "user", "content": "Hello."}
_ASSISTANT: Final = {"role": "assistant", "content": "Hello."}
_SYSTEM: Final = {"role": "system", "content": "Be brief."}
_PLAIN: Final = (_USER,)
_SYSTEM_FIRST: Final = (_SYSTEM, _USER)
_SYSTEM_IN_THE_MIDDLE: Final = (_USER, _ASSISTANT, _SYSTEM, _USER)


class _Answer(msgspec.Struct):
    """vLLM's answer, or llama.cpp's prompt; other servers may lack every field."""

    count: int = 0
    tokens: list[int] | None = None
    prompt: str = ""

    @property
    def is_rendered(self) -> bool:
        return self.count > 0 or bool(self.tokens) or bool(self.prompt)


class _Model(msgspec.Struct):
    id: str = ""


class _Models(msgspec.Struct):
    """The answer of compatible servers to `GET /v1/models`."""

    data: list[_Model]


@dataclass(slots=True)
class _KnownPlacement:
    """What is known about one model, and the lock of a running probe."""

    placement: Placement | None = None
    until: float = 0.0  # the loop's time
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class TemplateProbe(UpstreamSession):
    """`memory.ports.ChatTemplates`. Open with `async with`. With an empty `upstream` nothing is known."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self._asked: Recent[str, _KnownPlacement] = Recent(MODELS_MAX)
        self._turns = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._waiting = 0

    async def placement(self, model: str) -> Placement | None:
        """Cached for a minute; concurrent calls share one answer."""
        if not self.base or not model or len(model) > MODEL_CHARACTERS_MAX:
            return None
        name = well_formed(model)
        asked = self._asked[name] = self._asked.get(name) or _KnownPlacement()
        loop = asyncio.get_running_loop()
        if loop.time() < asked.until:
            return asked.placement
        if self._waiting >= WAITING_MAX:
            return None
        self._waiting += 1
        try:
            async with asked.lock, self._turns:
                if loop.time() >= asked.until:
                    asked.placement = await self._in_time(name)
                    asked.until = loop.time() + REMEMBERED_SECONDS
        finally:
            self._waiting -= 1
        return asked.placement

    async def models(self) -> Sequence[str]:
        """The first few that the server lists, within two seconds."""
        if not self.base:
            return ()
        try:
            async with asyncio.timeout(SECONDS_MAX):
                served = await self.get("/v1/models", _Models)
        except (TimeoutError, aiohttp.ClientError, OSError):
            return ()
        return [model.id for model in served.data if model.id][:MODELS_NAMED_MAX] if served is not None else ()

    async def _in_time(self, model: str) -> Placement | None:
        try:
            async with asyncio.timeout(SECONDS_MAX):
                return await self._found_out(model)
        except TimeoutError:
            return None

    async def _found_out(self, model: str) -> Placement | None:
        for path in REFUSED:
            placement = await self._rendered(model, path)
            if placement is not None:
                return placement
        return None

    async def _rendered(self, model: str, path: str) -> Placement | None:
        """From the most to the least demanding question: one call for a template that accepts everything."""
        is_taken_in_the_middle = await self._takes(model, path, _SYSTEM_IN_THE_MIDDLE)
        if is_taken_in_the_middle is not False:
            return Placement.BEFORE_LAST_USER if is_taken_in_the_middle else None
        if not await self._takes(model, path, _PLAIN):
            return None  # it refuses every question, which says nothing about the template
        is_taken_first = await self._takes(model, path, _SYSTEM_FIRST)
        return Placement.OFF if is_taken_first is False else Placement.SYSTEM

    async def _takes(self, model: str, path: str, messages: Sequence[dict[str, str]]) -> bool | None:
        """Whether the template accepts these messages; None if the answer does not tell."""
        try:
            status, answer = await self.post(path, {"model": model, "messages": messages}, _Answer)
        except TimeoutError:
            raise  # our own limit for all questions together
        except (aiohttp.ClientError, OSError):
            return None
        if status != OK:
            return False if status in REFUSED[path] else None
        return True if answer is not None and answer.is_rendered else None
