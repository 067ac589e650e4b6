"""A real `/v1/chat/completions` server whose manners depend on what it is asked about.

Asked for drafts, it writes down every statement "My … boat is …." word for word; asked whether one statement changes
another, it says no. `moods` says, by a word of the first statement, how it behaves instead.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any

from aiohttp import web

HUGE_BYTES = 10 << 20
PROMPT_TOKENS = 100  # of any question, as it counts
STATEMENT = re.compile(r"My (\w+) boat is \w+\.")


class Mood(StrEnum):
    WELL = "well"
    SILENT = "silent"  # takes the question and never answers
    JUNK = "junk"
    HUGE = "huge"
    HANGS_UP = "hangs up"
    REFUSES = "refuses"


class MoodyModel:
    """`drafts` counts requests for drafts by that word; `calls` counts all."""

    def __init__(self, moods: Mapping[str, Mood]) -> None:
        self.moods = dict(moods)
        self.drafts: Counter[str] = Counter()
        self.calls = 0
        self.port = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls += 1
        if "facts" not in body["response_format"]["json_schema"]["schema"]["properties"]:
            return _said('{"is":"different"}')
        asked = [m["content"] for m in body["messages"] if m["role"] == "user"]
        # Our own examples stand before the question, an answer that was sent back and its objection behind it.
        question = next(text for text in reversed(asked) if STATEMENT.search(text))
        found = list(STATEMENT.finditer(question))
        word = found[0].group(1)
        self.drafts[word] += 1
        return await self._manners(self.moods.get(word, Mood.WELL), request, [match.group() for match in found])

    async def _manners(self, mood: Mood, request: web.Request, statements: list[str]) -> web.StreamResponse:
        match mood:
            case Mood.SILENT:
                await asyncio.sleep(3_600)
            case Mood.HANGS_UP:
                assert request.transport is not None
                request.transport.abort()
            case Mood.REFUSES:
                return web.Response(status=503)
            case Mood.HUGE:
                return web.Response(body=b" " * HUGE_BYTES, content_type="application/json")
            case Mood.JUNK:
                return _said("As a sailor I would say: Ahoy!")
        facts = [_fact(statement) for statement in statements]
        return _said(json.dumps({"facts": facts}))


def _fact(statement: str) -> dict[str, str]:
    plain = {"type": "semantic", "category": "fact", "subject": "user", "told": "explicit", "sure": "high"}
    return {"quote": statement, "text": statement, **plain, "weight": "medium", "starts": "", "ends": ""}


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
