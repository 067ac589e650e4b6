"""The Responses half of `bench/prefix.py`: what notes cost a prefix cache behind `POST /v1/responses`, counted.

Two clients say the same thirty turns: one sends all items again, one sends a string and goes on from the response
before. The server is vLLM's in how it makes a prompt and in what it holds (`tests/support/responses_server.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from prefix_cache import BLOCK_TOKENS, NOW, PrefixCache, answered, rendered
from response_objects import text_item
from responses_server import ResponsesServer, prompt_of

from memory.chat.completions import insert_notes, read_chat_request
from memory.chat.responses import RESPONSES
from memory.model import ChainLink, Placement, RecallStatus, Scope
from memory.ports import ResponseChains
from memory.recall.notes.past_notes import note_keys
from memory.recall.pipeline import RecallPipeline

INSTRUCTIONS = "You are helpful."


@dataclass
class ResponsesConversation:
    """One client's. `placement` None: memory is off. `hits`: the client's own blocks, per request."""

    recall: RecallPipeline
    chains: ResponseChains
    user_id: str
    is_chained: bool
    placement: Placement | None = Placement.BEFORE_LAST_USER
    server: ResponsesServer = field(default_factory=ResponsesServer)
    cache: PrefixCache = field(default_factory=PrefixCache)
    items: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)
    note_tokens: int = 0
    previous: str = ""
    link: ChainLink = field(default_factory=lambda: ChainLink("s", "t"))

    async def exchanges(self, every: Sequence[tuple[str, str]]) -> None:
        for question, answer in every:
            await self.exchange(question, answer)

    async def exchange(self, question: str, answer: str) -> None:
        sent = await self._sent(question)
        prompt = rendered(prompt_of(sent, self.server.held.get(self.previous, ())), self.notes)
        self.hits.append(sum(token.is_client_s for token in self.cache.cached(prompt)) // BLOCK_TOKENS)
        self.note_tokens = sum(not token.is_client_s for token in prompt)
        self.cache.add([*prompt, *answered(answer)])
        self.server.output.append([text_item(answer)])
        response = self.server.answer(sent)
        assert response is not None, "the server holds the response before"
        self.items.append({"role": "assistant", "content": answer})
        if self.is_chained:
            self.previous = response["id"]
            await self.chains.keep(self.user_id, (self.previous,), self.link, at=NOW)

    async def _sent(self, question: str) -> dict[str, Any]:
        """The body that reaches the server. What the observer would keep of it is ready to be kept."""
        self.items.append({"role": "user", "content": question})
        config: dict[str, object] = {"enabled": self.placement is not None}
        if self.placement is not None:
            config["placement"] = str(self.placement)
        body: dict[str, Any] = {"model": "m", "instructions": INSTRUCTIONS, "memory_config": config}
        body["input"] = question if self.is_chained else self.items
        if self.previous:
            body["previous_response_id"] = self.previous
        request = read_chat_request(json.dumps(body).encode(), RESPONSES)
        outcome = await self.recall.recall(Scope(self.user_id), request)
        if outcome.status is RecallStatus.UNAVAILABLE:
            raise RuntimeError(f"recall did not work: {outcome.reason}")
        if outcome.notes:
            key = list(note_keys(Scope(self.user_id), request).values())[-1]
            self.link = ChainLink("s", "t", self.link.followed_by(key))
        self.notes = list(dict.fromkeys((*self.notes, *(note.text for note in outcome.notes))))
        sent: dict[str, Any] = json.loads(insert_notes(request, outcome.notes))
        return sent
