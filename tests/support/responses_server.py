"""A server of `POST /v1/responses` as vLLM has it: what it sends, how it keeps what was said, and what it was sent.

It holds conversations as vLLM does: the messages of earlier requests but for their system messages, and the text of
earlier answers but for their reasoning; `instructions` do not carry over.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from response_objects import PATH, Item, event_stream, response_object, text_item
from starlette.responses import Response
from upstream import Recorder, refused, streamed_or_whole


@dataclass
class ResponsesServer(Recorder):
    """Set `output` before a request: what it answers, and with what status. Read `received` and `prompts` after it."""

    output: list[list[Item]] = field(default_factory=list)  # of the next answers, in order; then it says "Noted."
    status: str = "completed"
    prompts: list[list[Item]] = field(default_factory=list)
    held: dict[str, list[Item]] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=itertools.count)

    def behave(self) -> None:
        """As at the start, but for what was received and is held."""
        self.output.clear()
        self.status = "completed"

    def answer(self, asked: Item) -> Item | None:
        """The response to a body; None where it goes on from one that is not held."""
        previous = asked.get("previous_response_id")
        if previous is not None and previous not in self.held:
            return None
        output = self.output.pop(0) if self.output else [text_item("Noted.")]
        response = response_object(output, response_id=f"resp_{next(self.ids)}", status=self.status)
        self.prompts.append(prompt_of(asked, self.held.get(previous or "", ())))
        if asked.get("store") is not False:
            said = [m for m in self.prompts[-1] if m["role"] != "system"]
            self.held[response["id"]] = [*said, *_answers(output)]
        return response

    async def _answer(self, method: str, path: str, body: bytes) -> Response:
        if (method, path) != ("POST", PATH):
            return refused(404, "not found")
        asked = json.loads(body)
        response = self.answer(asked)
        if response is None:
            return refused(404, "no such response")
        return streamed_or_whole(asked, response, event_stream(response))


def prompt_of(asked: Item, held: Sequence[Item] = ()) -> list[Item]:
    """The messages that the chat template gets for that body. Raises what a body of another shape leads to."""
    messages = [{"role": "system", "content": asked["instructions"]}] if asked.get("instructions") else []
    messages += held
    if isinstance(asked["input"], str):
        return [*messages, {"role": "user", "content": asked["input"]}]
    return [*messages, *(said for item in asked["input"] if (said := _message(item)) is not None)]


def _message(item: Item) -> Item | None:
    match item.get("type", "message"):
        case "message":
            return {"role": item["role"], "content": _content(item.get("content"))}
        case "function_call":
            return {"role": "assistant", "content": f"{item['name']}({item['arguments']})"}
        case "function_call_output":
            return {"role": "tool", "content": str(item["output"])}
        case _:
            return None


def _content(content: object) -> str:
    if not isinstance(content, list):
        return str(content or "")
    return "\n".join(str(part.get("text") or part["type"]) for part in content)


def _answers(output: Sequence[Item]) -> list[Item]:
    texts = [part["text"] for item in output if item["type"] == "message" for part in item["content"] if "text" in part]
    calls = [_message(item) for item in output if item["type"] == "function_call"]
    return [*({"role": "assistant", "content": text} for text in texts), *(call for call in calls if call is not None)]
