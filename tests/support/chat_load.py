"""A bounded load of chats on a product, plain and streamed, which goes on while parts are restarted or killed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
from product import Product

CHAT_SECONDS_MAX = 30.0
DONE = "data: [DONE]"


@dataclass(frozen=True, slots=True)
class Chat:
    """What a client saw. `began`, `ended`: on the monotonic clock. `failure`: "" if it was answered completely."""

    began: float
    ended: float
    user: str
    is_streamed: bool
    failure: str
    memory: str


@dataclass
class ChatLoad:
    """The chats so far."""

    chats: list[Chat] = field(default_factory=list)

    @property
    def failures(self) -> Counter[str]:
        return Counter(chat.failure for chat in self.chats if chat.failure)

    def without_memory(self) -> list[Chat]:
        """Those that got no note."""
        return [chat for chat in self.chats if not chat.failure and chat.memory != "used"]

    def memory_of(self) -> Counter[str]:
        return Counter(chat.memory for chat in self.chats)


@contextmanager
def chatting(
    product: Product, question: str, users: Sequence[str], *, pause_seconds: float = 0.05
) -> Iterator[ChatLoad]:
    """Each user asks again and again, every second one for streamed answers. Ends when all chats are answered."""
    load, stop = ChatLoad(), threading.Event()

    def talk(user: str, is_streamed: bool) -> None:
        with httpx.Client(timeout=CHAT_SECONDS_MAX, trust_env=False) as client:
            while not stop.wait(pause_seconds):
                load.chats.append(_asked(client, product, question, user, is_streamed=is_streamed))

    threads = [threading.Thread(target=talk, args=(user, bool(number % 2))) for number, user in enumerate(users)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _asked(client: httpx.Client, product: Product, question: str, user: str, *, is_streamed: bool) -> Chat:
    messages = [{"role": "user", "content": question}]
    body = {"model": "m", "stream": is_streamed, "messages": messages, "memory_context": {"user_id": user}}
    began, failure, memory = time.monotonic(), "", ""
    try:
        with client.stream("POST", f"{product.url}/v1/chat/completions", json=body) as answer:
            memory = answer.headers.get("x-memory-status", "none")
            text = answer.read().decode()
            if answer.status_code != 200:
                failure = f"status {answer.status_code}"
            elif is_streamed and DONE not in text:
                failure = "incomplete stream"
    except httpx.HTTPError as error:
        failure = type(error).__name__
    return Chat(began, time.monotonic(), user, is_streamed, failure, memory)
