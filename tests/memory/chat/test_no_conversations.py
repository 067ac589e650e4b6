"""What an API does not describe is no conversation, and is stripped of our fields all the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory.chat.api_shape import ApiShape
from memory.chat.completions import COMPLETIONS, insert_notes, read_chat_request
from memory.chat.messages import MESSAGES
from memory.chat.own_fields import MemoryContext
from memory.chat.responses import RESPONSES


def said(content: Any, role: Any = "user") -> dict[str, Any]:
    return {"role": role, "content": content}


HI = said("Hi")
NO_MESSAGES: list[Any] = [None, [], "Hi", {}, [7], ["Hi"], [{}], [said("Hi", 7)], [said(7)], [said([7])], [HI, None]]
NO_INPUT: list[Any] = [None, 7, {}, [], [7], [HI, "Hi"], [said(7)], [said([{"type": 5}])]]
UNLIKE: dict[ApiShape, list[dict[str, Any]]] = {
    COMPLETIONS: [{"messages": one} for one in NO_MESSAGES],
    MESSAGES: [
        *({"messages": one} for one in (*NO_MESSAGES, [{"role": "user"}], [said(None)], [said(["Hi"])])),
        {"messages": [HI], "system": 7},
        {"input": "Hi"},
        {},
    ],
    RESPONSES: [
        *({"input": one} for one in NO_INPUT),
        {"input": "Hi", "instructions": ["Be brief."]},
        {"messages": [HI]},
        {},
    ],
}


@pytest.mark.parametrize(("shape", "body"), [(shape, body) for shape, bodies in UNLIKE.items() for body in bodies])
def test_it_is_not_read_but_stripped(shape: ApiShape, body: dict[str, Any]) -> None:
    request = read_chat_request(json.dumps(body | {"memory_context": {"user_id": "ann"}}).encode(), shape)
    assert (request.conversation, request.context) == (None, MemoryContext("ann"))
    assert insert_notes(request, ()) == json.dumps(body).encode()
