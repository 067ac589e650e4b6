"""The filter is killed after the upstream got the request and before the observer has seen the end of its answer.

What the user said is in the turn log by then: no words are lost, and they are learnt.
"""

from __future__ import annotations

import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from product import READY_SECONDS_MAX, Product, eventually, with_pid
from two_of_each import kept_of
from upstream import RecordingUpstream

pytestmark = pytest.mark.full("the filter of the product is killed ten times")
KILLS, CHATS = 5, 5  # of each kind, and chats that each kill interrupts: 50 in all


@pytest.mark.parametrize("is_begun", [False, True], ids=["before its answer", "within its answer"])
def test_no_words_are_lost_with_a_filter_that_is_killed_before_it_has_seen_the_answer(
    shared_product: Product, upstream: RecordingUpstream, *, is_begun: bool
) -> None:
    said = {
        f"interrupted {is_begun} {kill} {chat}": f"My parcel {kill}{chat} is in locker {kill}{chat}."
        for kill in range(KILLS)
        for chat in range(CHATS)
    }
    users = list(said)
    with ThreadPoolExecutor(CHATS) as clients:
        for first in range(0, len(users), CHATS):
            eventually(lambda: has_memory(shared_product), seconds=READY_SECONDS_MAX)
            upstream.behave()
            upstream.is_held = not is_begun
            upstream.chunk_seconds, upstream.chunk_count = 0.05, 10_000
            chats = [
                clients.submit(shared_product.chat, said[user], user, stream=is_begun)
                for user in users[first : first + CHATS]
            ]
            try:
                for user in users[first : first + CHATS]:  # the answer is held, so only inject can have written them
                    eventually(lambda user=user: kept_of(shared_product, user).said)
                eventually(lambda: not is_begun or len(upstream.streamed) >= CHATS)
                for pid in shared_product.children("memproxy filter"):
                    with_pid(pid, signal.SIGKILL)
            finally:
                upstream.is_held, upstream.chunk_count = False, 1
            assert [chat.result().status_code for chat in chats] == [200] * CHATS
    eventually(lambda: has_memory(shared_product), seconds=READY_SECONDS_MAX)
    upstream.behave()
    for user, words in said.items():
        assert shared_product.flush(user)["pending"] == 0
        assert kept_of(shared_product, user).said == Counter([words])
    assert shared_product.memories(users[-1]), "they are learnt as well"


def has_memory(product: Product) -> bool:
    try:
        return "x-memory-status" in product.chat("Where is my parcel?", "somebody else").headers
    except httpx.HTTPError:
        return False
