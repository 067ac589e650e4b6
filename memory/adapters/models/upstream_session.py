"""Small questions to the upstream about its models: `GET` and `POST` of JSON, with answers up to a size.

Never raises for what a server answers, and sets no time limit of its own: the caller's covers all questions about one
model. No text of users is sent.
"""

from __future__ import annotations

from typing import Final, Self, TypeVar

import aiohttp
import msgspec

from memory.adapters.http_probe import body_of

ANSWER_BYTES_MAX: Final = 1 << 20  # a list of hundreds of models
OK: Final = 200

Answer = TypeVar("Answer")


class UpstreamSession:
    """Open with `async with`. An empty `upstream` has an empty `base`, and must not be asked.

    `upstream`: an http or https URL as in the setting; a final `/v1` is dropped, since vLLM's `/tokenize` is next to
    it.
    """

    def __init__(self, upstream: str) -> None:
        self.base = upstream.rstrip("/").removesuffix("/v1")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, kind: type[Answer]) -> Answer | None:
        """The answer of a successful call; None for anything else.

        Raises `aiohttp.ClientError` or `OSError` if there is no answer.
        """
        assert self._session is not None, "open the session with `async with`"
        async with self._session.get(f"{self.base}{path}", allow_redirects=False) as response:
            return await _decoded(response, kind) if response.status == OK else None

    async def post(self, path: str, question: object, kind: type[Answer]) -> tuple[int, Answer | None]:
        """The status, and the answer of a successful call. Raises as `get` does."""
        assert self._session is not None, "open the session with `async with`"
        headers, body = {"content-type": "application/json"}, msgspec.json.encode(question)
        async with self._session.post(
            f"{self.base}{path}", data=body, headers=headers, allow_redirects=False
        ) as response:
            return response.status, await _decoded(response, kind) if response.status == OK else None


async def _decoded(response: aiohttp.ClientResponse, kind: type[Answer]) -> Answer | None:
    """The body, as far as the limit, as a value of this type; None if it is none."""
    body = await body_of(response, bytes_max=ANSWER_BYTES_MAX)
    if body is None:
        return None
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
