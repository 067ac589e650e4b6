"""A chat template that refuses a later system message, whatever status its server has for that: one chat is enough."""

from __future__ import annotations

import httpx
import pytest
from product import Product, eventually, in_time
from upstream import RecordingUpstream


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_refusal_in_words_is_learnt_from_one_chat(
    shared_product: Product, upstream: RecordingUpstream, status: int
) -> None:
    product, user = shared_product, f"owner of a template that says {status}"
    product.chat("My cat is called Mochi.", user)
    assert product.flush(user) == {"pending": 0, "failed": 0}
    upstream.later_system = status
    talk = [("user", "Hello"), ("assistant", "Hello to you"), ("user", "What is my cat called?")]
    body = {
        "model": f"refuses with {status}",
        "memory_context": {"user_id": user},
        "messages": [{"role": role, "content": content} for role, content in talk],
    }

    def asked() -> httpx.Response:
        return in_time(lambda: httpx.post(f"{product.url}/v1/chat/completions", json=body, timeout=30))

    assert asked().status_code == status
    refused = len(upstream.received)
    eventually(lambda: asked().status_code == 200)  # it is learnt behind the reply
    assert len(upstream.received) - refused <= 20
    assert "Mochi" in upstream.last_chat().system_text()
