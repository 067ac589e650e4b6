"""Asks the upstream for the context window of a model.

vLLM tells it twice: `/tokenize` answers with `max_model_len`, and counts a sample text of ours, by which our estimate
is corrected; `/v1/models` lists `max_model_len` per model. Other servers tell neither, and their notes are not
bounded. No text of users is sent, and no chat waits for it.
"""

from __future__ import annotations

import asyncio
from typing import Final

import aiohttp
import msgspec

from memory.adapters.models.upstream_session import UpstreamSession
from memory.adapters.well_formed import well_formed
from memory.chat.token_estimate import estimated_tokens
from memory.model import ModelWindow

SECONDS_MAX = 2.0  # for all questions about one model; even a busy server tokenizes within milliseconds
MODEL_CHARACTERS_MAX = 256  # no server has longer names
WINDOW_TOKENS_MAX = 100_000_000  # more is not a window
CORRECTION_MIN, CORRECTION_MAX = 0.8, 1.6  # of our estimate: one sample must not make it useless

# Prose, another language, numbers, names and code, as chats have them.
SAMPLE: Final = (
    "We decided to book the small meeting room on 14 March 2026 at 15:30 for Ms. Okonkwo-Petersen and eleven guests; "
    "the invoice of 1,284.50 euros goes to the treasurer. Die Wohnungsgenossenschaft hat die Nebenkostenabrechnung "
    "verschickt, und wir müssen bis Donnerstag widersprechen. ¿Podrías recordarme la dirección de la farmacia?\n"
    "```python\nfor index, (name, price) in enumerate(sorted(prices.items())):\n"
    "    print(f'{index:>3} {name}: {price}')\n```\n"
)


class _Tokenized(msgspec.Struct):
    count: int = 0
    max_model_len: int | None = None


class _Listed(msgspec.Struct):
    id: str = ""
    max_model_len: int | None = None


class _Listing(msgspec.Struct):
    data: list[_Listed]


class WindowProbe(UpstreamSession):
    """`memory.ports.WindowSource`. Open with `async with`. With an empty `upstream` nothing is known."""

    async def window(self, model: str) -> ModelWindow | None:
        if not self.base or not model or len(model) > MODEL_CHARACTERS_MAX:
            return None
        try:
            async with asyncio.timeout(SECONDS_MAX):
                return await self._tokenized(well_formed(model)) or await self._listed(well_formed(model))
        except (TimeoutError, aiohttp.ClientError, OSError):
            return None

    async def _tokenized(self, model: str) -> ModelWindow | None:
        _, answer = await self.post("/tokenize", {"model": model, "prompt": SAMPLE}, _Tokenized)
        if answer is None or answer.max_model_len is None:
            return None
        counted = answer.count / estimated_tokens(SAMPLE)
        correction = min(max(counted, CORRECTION_MIN), CORRECTION_MAX) if counted > 0 else 1.0
        return _window(answer.max_model_len, correction)

    async def _listed(self, model: str) -> ModelWindow | None:
        listing = await self.get("/v1/models", _Listing)
        found = next((one for one in listing.data if one.id == model), None) if listing is not None else None
        return _window(found.max_model_len, 1.0) if found is not None and found.max_model_len is not None else None


def _window(tokens: int, correction: float) -> ModelWindow | None:
    return ModelWindow(tokens, correction) if 0 < tokens <= WINDOW_TOKENS_MAX else None
