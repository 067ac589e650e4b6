"""Asks the upstream for its models, and whether a model's chat template takes system messages of ours.

The second goes to its `/tokenize`, as vLLM has it. Rendering a conversation is what that call does before it counts
tokens, so a template that refuses one answers 400, and nothing is generated. Other servers have no such path, or one of
another shape under the same name (llama.cpp answers 200 and no tokens, some answer 400 to any messages): only tokens
are a yes, and only a 400 beside a yes is a no. What is sent holds no word of any user. No chat may ever wait for it.
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

SECONDS_MAX = 2.0  # for all questions about one model; a server that is busy generating tokenizes in milliseconds
ANSWER_BYTES_MAX = 64 << 10  # the answer to these few words is a hundredth of it
REMEMBERED_SECONDS = 60.0  # a refused chat asks again: the model behind a name may have been replaced
MODELS_MAX = 1_000  # remembered; clients choose the names
MODEL_CHARACTERS_MAX = 256  # no server has longer names
MODELS_NAMED_MAX = 16  # asked about before the first chat; a server of hundreds loads most of them only when asked
IN_FLIGHT_MAX = 4  # a flood of names must not become a flood of questions
WAITING_MAX = 100  # for their turn; past it nothing is found out

_USER: Final = {"role": "user", "content": "Hello."}
_ASSISTANT: Final = {"role": "assistant", "content": "Hello."}
_SYSTEM: Final = {"role": "system", "content": "Be brief."}
_PLAIN: Final = (_USER,)
_SYSTEM_FIRST: Final = (_SYSTEM, _USER)
_SYSTEM_IN_THE_MIDDLE: Final = (_USER, _ASSISTANT, _SYSTEM, _USER)


class _Answer(msgspec.Struct):
    """vLLM's; every field may be missing elsewhere."""

    count: int = 0
    tokens: list[int] | None = None


class _Model(msgspec.Struct):
    id: str = ""


class _Models(msgspec.Struct):
    """What all compatible servers answer to `GET /v1/models`."""

    data: list[_Model]


@dataclass(slots=True)
class _KnownPlacement:
    """What is known of one model, and the lock of whoever is finding out."""

    placement: Placement | None = None
    until: float = 0.0  # in the loop's time
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class TemplateProbe:
    """`memory.ports.ChatTemplates`, opened by `async with`. An empty `upstream` knows nothing.

    `upstream` is an http or https URL as the setting has it: a final `/v1` is dropped, since the path is beside it.
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
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))  # ours covers the whole call
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def placement(self, model: str) -> Placement | None:
        """Remembered for a minute; several who ask at once get one answer."""
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
        """From the boldest question to the plainest: one call for a template that takes everything."""
        is_taken_in_the_middle = await self._takes(model, _SYSTEM_IN_THE_MIDDLE)
        if is_taken_in_the_middle is not False:
            return Placement.BEFORE_LAST_USER if is_taken_in_the_middle else None
        if not await self._takes(model, _PLAIN):
            return None  # it refuses whatever we ask: that says nothing about the template
        is_taken_first = await self._takes(model, _SYSTEM_FIRST)
        return Placement.OFF if is_taken_first is False else Placement.SYSTEM

    async def _takes(self, model: str, messages: Sequence[dict[str, str]]) -> bool | None:
        """Whether the template takes these messages; None where the answer does not tell."""
        assert self._session is not None, "open the probe with `async with`"
        body = msgspec.json.encode({"model": model, "messages": messages})
        headers = {"content-type": "application/json"}
        try:
            async with self._session.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                if response.status != 200:
                    return False if response.status == 400 else None
                answer = msgspec.json.decode(await _read(response), type=_Answer)
        except TimeoutError:
            raise  # it is ours, for all questions together
        except (aiohttp.ClientError, OSError, msgspec.DecodeError):
            return None
        return True if answer.count > 0 or answer.tokens else None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body, or as much of it as we are ready to look at."""
    try:
        return await response.content.readexactly(ANSWER_BYTES_MAX)
    except asyncio.IncompleteReadError as end:
        return end.partial


__all__ = ["TemplateProbe"]
