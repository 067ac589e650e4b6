"""Asks the upstream about its models: which there are, where their chat templates take our system messages, and how
large their context windows are. No text of users is sent, and no chat waits for it.

Templates are asked by what renders a conversation and generates nothing: vLLM's `/tokenize`, where a template that
refuses it gives 400, or llama.cpp's `/apply-template`, where it gives 500. Other servers have no such path, or a
different one of the same name (llama.cpp's `/tokenize` answers 200 without tokens, some answer 400 to any messages):
only tokens or a prompt count as yes, and an error counts as no only if another question gave a yes.

vLLM tells a window twice: `/tokenize` answers with `max_model_len`, and counts a sample text of ours, by which our
estimate is corrected; `/v1/models` lists `max_model_len` per model. Other servers tell neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

import aiohttp
import msgspec

from memory.adapters.http_probe import body_of
from memory.adapters.well_formed import well_formed
from memory.chat.token_estimate import estimated_tokens
from memory.errors import Unavailable
from memory.model import ModelWindow, Placement
from memory.runtime.recent import Recent
from memory.typed import from_json

SECONDS_MAX = 2.0  # for all questions of one call; even a busy server tokenizes within milliseconds
ANSWER_BYTES_MAX: Final = 1 << 20  # a list of hundreds of models
REMEMBERED_SECONDS = 60.0  # a refused chat asks again: the model behind a name may have been replaced
MODELS_MAX = 1_000  # cached; clients choose the names
MODEL_CHARACTERS_MAX = 256  # no server has longer names
MODELS_NAMED_MAX = 16  # probed before the first chat; a server with hundreds loads most of them on demand
REFUSED: Final = {"/tokenize": (400,), "/apply-template": (400, 500)}  # where conversations are rendered
IN_FLIGHT_MAX = 4  # concurrent questions about templates: many model names must not become many requests
WAITING_MAX = 100  # waiting ones; further models are not asked about
WINDOW_TOKENS_MAX = 100_000_000  # more is not a window
CORRECTION_MIN, CORRECTION_MAX = 0.8, 1.6  # of our estimate: one sample must not make it useless
OK: Final = 200

_USER: Final = {"role": "user", "content": "Hello."}
_ASSISTANT: Final = {"role": "assistant", "content": "Hello."}
_SYSTEM: Final = {"role": "system", "content": "Be brief."}
_PLAIN: Final = (_USER,)
_SYSTEM_FIRST: Final = (_SYSTEM, _USER)
_SYSTEM_IN_THE_MIDDLE: Final = (_USER, _ASSISTANT, _SYSTEM, _USER)

# Prose, another language, numbers, names and code, as chats have them.
SAMPLE: Final = (
    "We decided to book the small meeting room on 14 March 2026 at 15:30 for Ms. Okonkwo-Petersen and eleven guests; "
    "the invoice of 1,284.50 euros goes to the treasurer. Die Wohnungsgenossenschaft hat die Nebenkostenabrechnung "
    "verschickt, und wir müssen bis Donnerstag widersprechen. ¿Podrías recordarme la dirección de la farmacia?\n"
    "```python\nfor index, (name, price) in enumerate(sorted(prices.items())):\n"
    "    print(f'{index:>3} {name}: {price}')\n```\n"
)

Answer = TypeVar("Answer")


class _Rendered(msgspec.Struct):
    """vLLM's answer, or llama.cpp's prompt; other servers may lack every field."""

    count: int = 0
    tokens: list[int] | None = None
    prompt: str = ""


class _Tokenized(msgspec.Struct):
    count: int = 0
    max_model_len: int | None = None


class _Model(msgspec.Struct):
    id: str = ""
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    """The answer of compatible servers to `GET /v1/models`."""

    data: list[_Model]


@dataclass(slots=True)
class _KnownPlacement:
    """What is known about one model, and the lock of a running question."""

    placement: Placement | None = None
    until: float = 0.0  # the loop's time
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class UpstreamModels:
    """`memory.ports.ChatTemplates` and `WindowSource`. Open with `async with`. With an empty `upstream` nothing is
    known.

    `upstream`: an http or https URL as in the setting; a final `/v1` is dropped, since vLLM's `/tokenize` is next to
    it.
    """

    def __init__(self, upstream: str) -> None:
        self._base = upstream.rstrip("/").removesuffix("/v1")
        self._session: aiohttp.ClientSession | None = None
        self._asked: Recent[str, _KnownPlacement] = Recent(MODELS_MAX)
        self._turns = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._waiting = 0

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def models(self) -> Sequence[str]:
        """The first few that the server lists, within two seconds."""
        if not self._base:
            return ()
        try:
            async with asyncio.timeout(SECONDS_MAX):
                served = await self._listed()
        except (TimeoutError, aiohttp.ClientError, OSError):
            return ()
        return [model.id for model in served or () if model.id][:MODELS_NAMED_MAX]

    async def placement(self, model: str) -> Placement | None:
        """Cached for a minute; concurrent calls share one answer."""
        if not self._is_asked_about(model):
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
                    asked.placement = await self._found_out(name)
                    asked.until = loop.time() + REMEMBERED_SECONDS
        finally:
            self._waiting -= 1
        return asked.placement

    async def window(self, model: str) -> ModelWindow | None:
        if not self._is_asked_about(model):
            return None
        try:
            async with asyncio.timeout(SECONDS_MAX):
                return await self._tokenized(well_formed(model)) or await self._listed_window(well_formed(model))
        except (TimeoutError, aiohttp.ClientError, OSError):
            return None

    def _is_asked_about(self, model: str) -> bool:
        return bool(self._base) and 0 < len(model) <= MODEL_CHARACTERS_MAX

    async def _found_out(self, model: str) -> Placement | None:
        try:
            async with asyncio.timeout(SECONDS_MAX):
                for path in REFUSED:
                    placement = await self._rendered(model, path)
                    if placement is not None:
                        return placement
        except TimeoutError:
            pass
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
            status, answer = await self._post(path, {"model": model, "messages": messages}, _Rendered)
        except TimeoutError:
            raise  # our own limit for all questions together
        except (aiohttp.ClientError, OSError):
            return None
        if status != OK:
            return False if status in REFUSED[path] else None
        is_rendered = answer is not None and (answer.count > 0 or answer.tokens or answer.prompt)
        return True if is_rendered else None

    async def _tokenized(self, model: str) -> ModelWindow | None:
        _, answer = await self._post("/tokenize", {"model": model, "prompt": SAMPLE}, _Tokenized)
        if answer is None:
            return None
        counted = answer.count / estimated_tokens(SAMPLE)
        correction = min(max(counted, CORRECTION_MIN), CORRECTION_MAX) if counted > 0 else 1.0
        return _window(answer.max_model_len, correction)

    async def _listed_window(self, model: str) -> ModelWindow | None:
        found = next((one for one in await self._listed() or () if one.id == model), None)
        return None if found is None else _window(found.max_model_len, 1.0)

    async def _listed(self) -> Sequence[_Model] | None:
        """None if the server lists none. Raises `aiohttp.ClientError` or `OSError` if there is no answer."""
        assert self._session is not None, "open it with `async with`"
        async with self._session.get(f"{self._base}/v1/models", allow_redirects=False) as response:
            served = await _decoded(response, _Models) if response.status == OK else None
        return None if served is None else served.data

    async def _post(self, path: str, question: object, kind: type[Answer]) -> tuple[int, Answer | None]:
        """The status, and the answer of a successful call. Raises as `_listed` does."""
        assert self._session is not None, "open it with `async with`"
        headers, body = {"content-type": "application/json"}, msgspec.json.encode(question)
        async with self._session.post(
            f"{self._base}{path}", data=body, headers=headers, allow_redirects=False
        ) as response:
            return response.status, await _decoded(response, kind) if response.status == OK else None


async def _decoded(response: aiohttp.ClientResponse, kind: type[Answer]) -> Answer | None:
    """The body, as far as the limit, as a value of this type; None if it is none."""
    body = await body_of(response.content.iter_any(), bytes_max=ANSWER_BYTES_MAX)
    if body is None:
        return None
    try:
        return from_json(body, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _window(tokens: int | None, correction: float) -> ModelWindow | None:
    return ModelWindow(tokens, correction) if tokens is not None and 0 < tokens <= WINDOW_TOKENS_MAX else None


async def first_model(endpoint: str, *, seconds: float) -> str:
    """The name of the first model that the server lists. Raises `Unavailable`."""
    try:
        async with asyncio.timeout(seconds), UpstreamModels(endpoint) as server:
            served = await server._listed()
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise Unavailable("model", type(error).__name__) from None
    if not served:
        raise Unavailable("model", "no list of models" if served is None else "an empty list of models")
    return served[0].id
