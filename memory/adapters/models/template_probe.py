"""Asks the upstream for its models, and whether a model's chat template accepts our system messages.

The latter uses vLLM's `/tokenize`, which renders a conversation before counting tokens: a template that refuses it
gives 400, and nothing is generated. Other servers have no such path, or a different one of the same name (llama.cpp
answers 200 without tokens, some answer 400 to any messages): only tokens count as yes, and a 400 counts as no only if
another question gave a yes. No text of users is sent, and no chat waits for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import aiohttp
import msgspec

from memory.adapters.well_formed import well_formed
from memory.model import Placement

SECONDS_MAX = 2.0  # for all questions about one model; even a busy server tokenizes within milliseconds
ANSWER_BYTES_MAX = 64 << 10  # answers to these few words are a hundredth of it
REMEMBERED_SECONDS = 60.0  # a refused chat asks again: the model behind a name may have been replaced
MODELS_MAX = 1_000  # cached; clients choose the names
MODEL_CHARACTERS_MAX = 256  # no server has longer names
MODELS_NAMED_MAX = 16  # probed before the first chat; a server with hundreds loads most of them on demand
IN_FLIGHT_MAX = 4  # concurrent probes: many model names must not become many requests
WAITING_MAX = 100  # waiting probes; further models are not probed

_USER: Final = {"role": "user", "content": "Hello."}
_ASSISTANT: Final = {"role": "assistant", "content": "Hello."}
_SYSTEM: Final = {"role": "system", "content": "Be brief."}
_PLAIN: Final = (_USER,)
_SYSTEM_FIRST: Final = (_SYSTEM, _USER)
_SYSTEM_IN_THE_MIDDLE: Final = (_USER, _ASSISTANT, _SYSTEM, _USER)


class _Answer(msgspec.Struct):
    """vLLM's answer; other servers may lack every field."""

    count: int = 0
    tokens: list[int] | None = None


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


class TemplateProbe:
    """`memory.ports.ChatTemplates`. Open with `async with`. With an empty `upstream` nothing is known.

    `upstream`: an http or https URL as in the setting; a final `/v1` is dropped, since `/tokenize` is next to it.
    """

    def __init__(self, upstream: str) -> None:
        base = upstream.rstrip("/").removesuffix("/v1")
        self._url = f"{base}/tokenize" if base else ""
        self._models_url = f"{base}/v1/models" if base else ""
        self._asked: OrderedDict[str, _KnownPlacement] = OrderedDict()
        self._turns = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._waiting = 0
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Our own limit covers the whole call.
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def placement(self, model: str) -> Placement | None:
        """Cached for a minute; concurrent calls share one answer."""
        if not self._url or not model or len(model) > MODEL_CHARACTERS_MAX:
            return None
        asked = self._entry(well_formed(model))
        loop = asyncio.get_running_loop()
        if loop.time() < asked.until:
            return asked.placement
        if self._waiting >= WAITING_MAX:
            return None
        self._waiting += 1
        try:
            async with asked.lock, self._turns:
                if loop.time() >= asked.until:
                    asked.placement = await self._in_time(well_formed(model))
                    asked.until = loop.time() + REMEMBERED_SECONDS
        finally:
            self._waiting -= 1
        return asked.placement

    async def models(self) -> Sequence[str]:
        """The first few that the server lists, within two seconds."""
        if not self._models_url:
            return ()
        assert self._session is not None, "open the probe with `async with`"
        try:
            async with (
                asyncio.timeout(SECONDS_MAX),
                self._session.get(self._models_url, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    return ()
                served = msgspec.json.decode(await _read(response), type=_Models)
        except (TimeoutError, aiohttp.ClientError, OSError, msgspec.DecodeError):
            return ()
        return [model.id for model in served.data if model.id][:MODELS_NAMED_MAX]

    def _entry(self, model: str) -> _KnownPlacement:
        asked = self._asked.setdefault(model, _KnownPlacement())
        self._asked.move_to_end(model)
        if len(self._asked) > MODELS_MAX:
            self._asked.popitem(last=False)
        return asked

    async def _in_time(self, model: str) -> Placement | None:
        try:
            async with asyncio.timeout(SECONDS_MAX):
                return await self._found_out(model)
        except TimeoutError:
            return None

    async def _found_out(self, model: str) -> Placement | None:
        """From the most to the least demanding question: one call for a template that accepts everything."""
        is_taken_in_the_middle = await self._takes(model, _SYSTEM_IN_THE_MIDDLE)
        if is_taken_in_the_middle is not False:
            return Placement.BEFORE_LAST_USER if is_taken_in_the_middle else None
        if not await self._takes(model, _PLAIN):
            return None  # it refuses every question, which says nothing about the template
        is_taken_first = await self._takes(model, _SYSTEM_FIRST)
        return Placement.OFF if is_taken_first is False else Placement.SYSTEM

    async def _takes(self, model: str, messages: Sequence[dict[str, str]]) -> bool | None:
        """Whether the template accepts these messages; None if the answer does not tell."""
        assert self._session is not None, "open the probe with `async with`"
        body = msgspec.json.encode({"model": model, "messages": messages})
        headers = {"content-type": "application/json"}
        try:
            async with self._session.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                if response.status != 200:
                    return False if response.status == 400 else None
                answer = msgspec.json.decode(await _read(response), type=_Answer)
        except TimeoutError:
            raise  # our own limit for all questions together
        except (aiohttp.ClientError, OSError, msgspec.DecodeError):
            return None
        return True if answer.count > 0 or answer.tokens else None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body up to the limit."""
    try:
        return await response.content.readexactly(ANSWER_BYTES_MAX)
    except asyncio.IncompleteReadError as end:
        return end.partial


__all__ = ["TemplateProbe"]
