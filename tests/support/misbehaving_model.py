"""A real `/v1/chat/completions` server whose manners depend on what it is asked about.

Asked to read, it claims every unit; asked about pairs, it keeps them apart. `moods` says, by the town of the first
"My budget for the … trip" that it is shown, how it behaves instead; "" where there is none.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any

from aiohttp import web
from reading_parts import a_claim, a_verdict, claims, verdicts
from scripted_model import PAIR, UNIT, question_of

HUGE_BYTES = 10 << 20
PROMPT_TOKENS = 100  # of any question, as it counts
TRIP = re.compile(r"My budget for the (\w+) trip")


class Mood(StrEnum):
    WELL = "well"
    SILENT = "silent"  # takes the question and never answers
    JUNK = "junk"
    HUGE = "huge"


class MoodyModel:
    """`reads` counts requests to read by that town; `calls` counts all."""

    def __init__(self, moods: Mapping[str, Mood]) -> None:
        self.moods = dict(moods)
        self.reads: Counter[str] = Counter()
        self.calls = 0
        self.port = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        question = question_of(await request.json())
        if pairs := PAIR.findall(question):
            return _said(verdicts(*(a_verdict(int(number), "unrelated", sure="low") for number, *_ in pairs)))
        units = UNIT.findall(question)
        town = next((found[1] for _, unit in units if (found := TRIP.search(unit))), "")
        self.reads[town] += 1
        return await self._manners(self.moods.get(town, Mood.WELL), [int(number) for number, _ in units])

    async def _manners(self, mood: Mood, units: list[int]) -> web.StreamResponse:
        match mood:
            case Mood.SILENT:
                await asyncio.sleep(3_600)
            case Mood.HUGE:
                return web.Response(body=b" " * HUGE_BYTES, content_type="application/json")
            case Mood.JUNK:
                return _said("As a sailor I would say: Ahoy!")
        return _said(claims(*map(a_claim, units)))


def _said(content: str) -> web.Response:
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": content}}
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": 5}
    return web.json_response({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage})


@asynccontextmanager
async def running_moody_model(moods: Mapping[str, Mood] | None = None, *, port: int = 0) -> AsyncIterator[MoodyModel]:
    model = MoodyModel(moods or {})
    app = web.Application()
    app.router.add_post("/v1/chat/completions", model.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
    model.port = runner.addresses[0][1]
    try:
        yield model
    finally:
        await runner.cleanup()
