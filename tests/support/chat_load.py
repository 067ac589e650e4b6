"""A bounded load of chats on a product, plain and streamed, which goes on while parts are restarted or killed."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
    said: str
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


@dataclass(frozen=True, slots=True)
class Talker:
    """One client of a user, in a session where one is named. `says`: the text of each of its chats, by number."""

    user: str
    says: Callable[[int], str]
    session_id: str = ""


@contextmanager
def chatting(
    product: Product, question: str, users: Sequence[str], *, pause_seconds: float = 0.05
) -> Iterator[ChatLoad]:
    """Each user asks again and again, every second one for streamed answers. Ends when all chats are answered."""
    with talking(product, [Talker(user, lambda _: question) for user in users], pause_seconds=pause_seconds) as load:
        yield load


@contextmanager
def talking(product: Product, talkers: Sequence[Talker], *, pause_seconds: float) -> Iterator[ChatLoad]:
    """The talkers at once, every second one with streamed answers. Pauses differ, or all would talk in step."""
    load, stop = ChatLoad(), threading.Event()

    def talk(number: int, talker: Talker) -> None:
        chance, numbers = random.Random(number), itertools.count()
        with httpx.Client(timeout=CHAT_SECONDS_MAX, trust_env=False) as client:
            while not stop.wait(chance.uniform(0.5, 1.5) * pause_seconds):
                said = talker.says(next(numbers))
                load.chats.append(_asked(client, product, talker, said, is_streamed=bool(number % 2)))

    threads = [threading.Thread(target=talk, args=each) for each in enumerate(talkers)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _asked(client: httpx.Client, product: Product, talker: Talker, said: str, *, is_streamed: bool) -> Chat:
    context = {"user_id": talker.user, **({"session_id": talker.session_id} if talker.session_id else {})}
    messages = [{"role": "user", "content": said}]
    body = {"model": "m", "stream": is_streamed, "messages": messages, "memory_context": context}
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
    return Chat(began, time.monotonic(), talker.user, said, is_streamed, failure, memory)
