"""An agent asks over MCP who the user is, and gets what chats have told: with the packaged models."""

from __future__ import annotations

from mcp_calls import called, client
from product import Product

TOLD = (
    "My name is Ezra Holt.",
    "I live in Saltmere.",
    "I repair clocks for a living.",
    "I'm allergic to celery.",
    "I have twin boys.",
)
ASKED = (
    "What do you know about me?",
    "Who am I?",
    "user preferences",
    "Was weißt du über mich?",
    "¿Qué sabes de mí?",
    "你对我了解多少？",
)


async def test_five_of_six_such_searches_get_every_fact(shared_product: Product) -> None:
    for number, statement in enumerate(TOLD):
        shared_product.chat(statement, "ezra", session_id=f"told-{number}")
    assert shared_product.flush("ezra") == {"pending": 0, "failed": 0}
    complete = []
    async with client(shared_product.api, x_authz_user_id="ezra") as agent:
        for query in ASKED:
            found = (await called(agent, "memory_search", query=query, limit=10))["memories"]
            missing = set(TOLD) - {memory["content"] for memory in found}
            complete += [query] if not missing else []
    assert len(complete) >= 5, complete
