"""What the product needs answers far too late, one at a time: a relay delays the Redis server, or the Milvus server.

No chat waits for it, each gets the upstream's answer byte for byte, and metrics say why it had no note. Once the delay
is gone, all that was said is in the record and learnt, once. `--long`: longer delays, also without Redis, and with a
real Milvus server in the place of Milvus Lite.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import yaml
from kept_things import SUBJECTS, kept_thing
from milvus_standalone import TOKEN
from product import Product, eventually, in_time, running_product
from redis_server import own_redis_server
from slow_relay import SlowRelay, running_relay
from two_of_each import ON_SERVERS, TURN_LOGS, counted, is_learnt_once, is_whole, kept_of, store_of
from upstream import RecordingUpstream, running_upstream
from whole_lives import call

REDIS, STORE = "redis", "store"
USERS = ("swimmer-0", "swimmer-1", "swimmer-2")
FACT = "My locker at the pool has the number 117."
STRANGERS = 6  # of each delay; each is asked once, and their memories are in no filter before
CHAT_SECONDS_MAX = 2.0  # Envoy goes on without us after one; who waited for a call or two would take longer
# Of what users ask whose memories a filter holds. It waits for what is new, which leaves a busy machine little time.
KNOWN_NOTED_MIN = 0.8
PAUSE_SECONDS = 0.2
SHORT_SECONDS, LONG_SECONDS = 6.0, 45.0
LEARNING = {"idle_seconds": 0.2, "retry_base_seconds": 0.5, "retry_max_seconds": 4.0}


@dataclass(frozen=True, slots=True)
class Delay:
    """`seconds`: in each direction. `reasons`: why a chat may have no note meanwhile."""

    part: str
    seconds: float
    reasons: frozenset[str]
    keeps_known: bool = False  # whether users whose memories a filter holds get notes


DELAYS = {
    "redis answers late": Delay(REDIS, 0.4, frozenset({"opt_out_unknown"})),
    "redis answers nobody in time": Delay(REDIS, 3.0, frozenset({"opt_out_unknown"})),
    "store": Delay(STORE, 1.5, frozenset({"deadline", "milvus", "busy"}), keeps_known=True),
}
LONG_DELAYS = {**DELAYS, "store answers nobody in time": Delay(STORE, 6.0, DELAYS["store"].reasons, keeps_known=True)}


@dataclass(frozen=True, slots=True)
class Chat:
    """`seconds`: until all of its answer was there. `is_whole`: byte for byte what the upstream sent."""

    user: str
    said: str
    memory: str
    seconds: float
    is_whole: bool
    is_untouched: bool  # what reached the upstream: the client's messages and nothing else


@dataclass
class SlowWorld:
    """A product whose servers stand behind relays. One chat at a time, so that each stream is compared with its own."""

    product: Product
    upstream: RecordingUpstream
    relays: Mapping[str, SlowRelay]
    kind: str
    chats: list[Chat] = field(default_factory=list)
    numbers: defaultdict[str, Iterator[int]] = field(default_factory=lambda: defaultdict(itertools.count))

    def ask(self, user: str, said: str, *, is_streamed: bool) -> Chat:
        self.upstream.streamed.clear()
        began = time.monotonic()
        answer = self.product.chat(said, user, session_id="s1", stream=is_streamed)
        seconds = time.monotonic() - began
        assert answer.status_code == 200
        received = self.upstream.last_chat()
        sent = b"".join(self.upstream.streamed) if is_streamed else self._plain_answer()
        body = received.json()
        is_untouched = body["messages"] == [{"role": "user", "content": said}] and "memory_context" not in body
        memory = answer.headers.get("x-memory-status", "none")
        chat = Chat(user, said, memory, seconds, answer.content == sent, is_untouched)
        self.chats.append(chat)
        return chat

    def _plain_answer(self) -> bytes:
        """What the upstream sends to whoever asks it directly."""
        body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
        return httpx.post(f"{self.upstream.url}/v1/chat/completions", json=body, timeout=10).content

    def statement(self, user: str) -> str:
        """Another one each time, while there are any."""
        number = next(self.numbers[user])
        return kept_thing(number) if number < len(SUBJECTS) else self.question()

    def question(self) -> str:
        """No two alike, so that each is found in the record."""
        return f"For form {len(self.chats)}: what number has my locker at the pool?"

    def without_note(self) -> Counter[str]:
        """Chats so far that should have had a look into memory and had none, by why."""
        page = httpx.get(f"http://127.0.0.1:{self.product.ports['metrics']}/metrics", timeout=10).text
        found = Counter[str]()
        for line in page.splitlines():
            if line.startswith("memproxy_requests_total{") and 'status="unavailable"' in line:
                reason = line.partition('reason="')[2].partition('"')[0]
                found[reason] += int(float(line.rsplit(" ", 1)[1]))
        return found


@contextmanager
def slow_world(kind: str, folder: Path) -> Iterator[SlowWorld]:
    with ExitStack() as stack:
        upstream = stack.enter_context(running_upstream())
        store = store_of(kind, folder)
        stack.callback(store.kill)
        store.start()
        relays = {STORE: stack.enter_context(running_relay(store.port))}
        arguments = ["--filters", "2", "--workers", "2"]
        if kind in (REDIS, ON_SERVERS):
            (folder / REDIS).mkdir()
            relays[REDIS] = stack.enter_context(
                running_relay(stack.enter_context(own_redis_server(folder / REDIS)).port)
            )
            arguments += ["--redis-url", f"redis://127.0.0.1:{relays[REDIS].port}"]
        config = folder / "memproxy.yaml"
        milvus_uri = f"http://127.0.0.1:{relays[STORE].port}"
        config.write_text(yaml.safe_dump({"milvus_uri": milvus_uri, "memory": {"learn": LEARNING}}))
        started = running_product(folder / "data", *arguments, upstream=upstream.url, config=config)
        yield SlowWorld(stack.enter_context(started), upstream, relays, kind)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("kind", (*TURN_LOGS, ON_SERVERS) if metafunc.config.getoption("--long") else (REDIS,))


@pytest.mark.soak("no chat takes two seconds")
@pytest.mark.slow("servers are slow for some seconds each")
def test_a_server_that_answers_too_late_delays_no_chat_and_loses_and_doubles_nothing(
    tmp_path: Path, kind: str, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == ON_SERVERS:
        monkeypatch.setenv("MEMPROXY_MEMORY_MILVUS_TOKEN", TOKEN)
    is_long = pytestconfig.getoption("--long")
    delays = LONG_DELAYS if is_long else DELAYS
    with slow_world(kind, tmp_path) as world:
        eventually(lambda: is_whole(world.product), seconds=60)
        make_known(world)
        for name, delay in delays.items():
            if delay.part in world.relays:
                chats = chats_meanwhile(world, name, delay, seconds=LONG_SECONDS if is_long else SHORT_SECONDS)
                assert_answered(chats, name)
                assert_learnt(world)
        assert counted(world.product, "memproxy_part_restarts_total") == 0


def make_known(world: SlowWorld) -> None:
    """Each user has a memory."""
    for user in USERS:
        world.ask(user, FACT, is_streamed=False)
    for user in USERS:
        assert world.product.flush(user) == {"pending": 0, "failed": 0}


def make_loaded(world: SlowWorld) -> None:
    """Both filters hold what is known of the users."""
    for user in USERS:
        for _ in range(2):
            assert asked_aside(world, user) == "used"


def asked_aside(world: SlowWorld, user: str) -> str:
    """What memory did for a question that is not recorded, in time."""
    said = world.question()
    answer = in_time(lambda: world.product.chat(said, user, memory_config={"auto_store": False}))
    return answer.headers["x-memory-status"]


def chats_meanwhile(world: SlowWorld, name: str, delay: Delay, *, seconds: float) -> list[Chat]:
    """Chats of known users and of strangers while the part is slow; metrics count those without a note as they are."""
    strangers = [f"stranger-{number}-of-{name.replace(' ', '-')}" for number in range(STRANGERS)]
    for stranger in strangers:
        call(world.product, "POST", "", stranger, json={"memories": [{"content": FACT}]})
    make_loaded(world)
    before, first = world.without_note(), len(world.chats)
    world.relays[delay.part].delay_seconds = delay.seconds
    try:
        ends_at = time.monotonic() + seconds
        for number, user in enumerate(itertools.cycle(USERS)):
            said = world.question() if number // len(USERS) % 2 else world.statement(user)
            world.ask(user, said, is_streamed=bool(number % 2))
            if strangers:
                world.ask(strangers.pop(), world.question(), is_streamed=bool(number % 2))
            if time.monotonic() > ends_at and not strangers:
                break
            time.sleep(PAUSE_SECONDS)
        assert is_whole(world.product), f"{name}: Envoy has given up a filter"
        counts = world.without_note() - before
    finally:
        world.relays[delay.part].delay_seconds = 0.0
    chats = world.chats[first:]
    assert set(counts) <= delay.reasons, name
    assert counts.total() == sum(chat.memory == "unavailable" for chat in chats), name
    # Writes to a Milvus server take so long that strangers have snapshots on Redis by now, and miss nothing.
    is_unfelt = world.kind == ON_SERVERS and delay.part == STORE
    assert counts.total() > 0 or is_unfelt, name
    asked = [chat for chat in chats if "locker" in chat.said and chat.user in USERS]
    noted = sum(chat.memory == "used" for chat in asked)
    assert noted >= KNOWN_NOTED_MIN * len(asked) > 0 if delay.keeps_known else noted == 0, (
        f"{name}: {noted} of {len(asked)}"
    )
    return chats


def assert_answered(chats: list[Chat], name: str) -> None:
    assert [chat for chat in chats if not chat.is_whole] == [], f"{name}: answers that the upstream did not send"
    assert [chat for chat in chats if chat.memory != "used" and not chat.is_untouched] == [], name
    assert [chat for chat in chats if chat.seconds > CHAT_SECONDS_MAX] == [], f"{name}: they waited"


def assert_learnt(world: SlowWorld) -> None:
    """All that was said so far, and what the strangers have is found again."""
    for user in {chat.user for chat in world.chats}:
        said = {chat.said for chat in world.chats if chat.user == user}
        is_learnt_once(world.product, user, said, stated={text for text in said if "?" not in text})
        assert kept_of(world.product, user).closed == Counter(said), f"answers to {user} are not in the record"
    assert counted(world.product, "memproxy_turns_lost_total") == 0
    for user in {chat.user for chat in world.chats}:
        assert asked_aside(world, user) == "used"
