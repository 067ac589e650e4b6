"""Of two filters, two workers, the API and the store, one after the other is killed or stopped while 200 sessions chat.

No chat fails, each that was answered is in the record once, what it stated is in memory once, and next to all get a
note. Envoy is the door itself: with it, the connections of the clients end.
"""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import pytest
from chat_load import Chat, Talker, talking
from kept_things import SUBJECTS, kept_thing
from milvus_standalone import MILVUS_SERVER, MilvusServer
from postgres_server import PostgresServer
from product import Product, eventually, in_time, sentences, with_pid
from two_of_each import MILVUS_LEASE_SECONDS, ON_SERVERS, TURN_LOGS, Kept, is_whole, kept_of, running_two_of_each
from upstream import RecordingUpstream, running_upstream

USERS, SESSIONS = 25, 8  # of each: 200 sessions
PAUSE_SECONDS = 8.0  # 25 chats a second
ASKED_BETWEEN = 2  # questions of a session after each statement
EVERY_SECONDS = 3.0
STILL_SECONDS = 3.0
DYING_SECONDS = 180.0
SEED = 20_261
FACT = "My locker at the pool has the number 117."
PARTS = ("memproxy filter", "memproxy worker", "memproxy api")
MILVUS_LITE, POSTGRES = "milvus-lite server", "postgres"
KILLED, STOPPED = (signal.SIGKILL,), (signal.SIGSTOP,)
ACKNOWLEDGED_SECONDS = 1.0  # after its answer, a turn is in the log, on a busy machine as well
POSTGRES_SECONDS_MAX = 5.0  # until it has read its files, on a slow machine
NOTICED_SECONDS = 1.5  # until Envoy sends nothing more to a filter that is gone: its health checks are 0.5 s apart


@dataclass(frozen=True, slots=True)
class Blow:
    """What happened to a part, on the monotonic clock."""

    part: str
    sign: signal.Signals
    at: float
    until: float

    def may_have_cost_the_turn_of(self, chat: Chat) -> bool:
        """Whether this chat may have been shown to a filter that was hit before it wrote the turn, or gone already."""
        is_filter = self.part == PARTS[0]
        return is_filter and self.at - ACKNOWLEDGED_SECONDS < chat.ended and chat.began < self.until + NOTICED_SECONDS


@dataclass(frozen=True, slots=True)
class Victims:
    """`servers`: those that hold the turn log and the memories, by name, which nobody starts again but this test."""

    product: Product
    servers: Mapping[str, PostgresServer | MilvusServer]

    @property
    def parts(self) -> tuple[str, ...]:
        return (*PARTS, *(() if MILVUS_SERVER in self.servers else (MILVUS_LITE,)), *self.servers)

    def hit(self, part: str, sign: signal.Signals, chance: random.Random) -> None:
        server = self.servers.get(part)
        if server is not None and sign is signal.SIGKILL:
            server.kill()
            server.start()
            return
        victim = chance.choice(self.product.children(part) if server is None else [server.pid])
        with_pid(victim, sign)
        if sign is signal.SIGSTOP:
            time.sleep(STILL_SECONDS)
            with_pid(victim, signal.SIGCONT)


@pytest.fixture(scope="module")
def upstream() -> Iterator[RecordingUpstream]:
    with running_upstream() as server:
        server.chunk_seconds, server.chunk_count = 0.1, 5
        yield server


@pytest.fixture
def victims(
    request: pytest.FixtureRequest, upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Victims]:
    data_dir, servers = tmp_path_factory.mktemp("dying") / "data", dict[str, PostgresServer | MilvusServer]()
    with ExitStack() as stack:
        config = None
        if request.param == ON_SERVERS:
            milvus = MilvusServer(data_dir.parent / "milvus", lease_seconds=MILVUS_LEASE_SECONDS)
            stack.callback(milvus.kill)
            milvus.start()
            servers[MILVUS_SERVER] = milvus
            config = stack.enter_context(milvus.configured(data_dir.parent, "memories"))
        running = running_two_of_each(request.param.split()[0], data_dir, upstream=upstream.url, config=config)
        started, postgres = stack.enter_context(running)
        if postgres is not None:
            servers[POSTGRES] = postgres
        eventually(lambda: is_whole(started))
        for user in users():
            assert started.chat(FACT, user).status_code == 200
        for user in users():
            assert started.flush(user) == {"pending": 0, "failed": 0}
            for _ in range(2):  # each filter loads what it knows of the user
                in_time(lambda user=user: started.chat(question(0), user, memory_config={"auto_store": False}))
        yield Victims(started, servers)


def users() -> list[str]:
    return [f"swimmer-{number}" for number in range(USERS)]


def question(number: int) -> str:
    """No two alike, so that each is found in the record."""
    return f"For form {number}: what number has my locker at the pool?"


def talkers() -> list[Talker]:
    """Each session states things of its own, and asks between them; together the sessions of a user state all once."""
    return [
        Talker(user, lambda number, session=session: said_in(session, number), f"s{session}")
        for user in users()
        for session in range(SESSIONS)
    ]


def said_in(session: int, number: int) -> str:
    turn, asked = divmod(number, ASKED_BETWEEN + 1)
    subject = turn * SESSIONS + session
    if asked or subject >= len(SUBJECTS):
        return question(number * SESSIONS + session + 1)
    return kept_thing(subject)


@pytest.mark.soak("parts are killed for three minutes")
@pytest.mark.parametrize("victims", [*TURN_LOGS, ON_SERVERS], indirect=True)
@pytest.mark.parametrize("signs", [KILLED, STOPPED], ids=["killed", "stopped"])
def test_parts_that_keep_dying_fail_no_chat_and_lose_and_double_nothing(
    victims: Victims, signs: Sequence[signal.Signals]
) -> None:
    product = victims.product
    with talking(product, talkers(), pause_seconds=PAUSE_SECONDS) as load:
        blows = strike(victims, signs, seconds=DYING_SECONDS)
    assert {blow.part for blow in blows} == set(victims.parts), "not all were hit: the test shows little"
    assert load.failures == {}
    assert [blow for blow in blows if blow.part == POSTGRES and blow.until - blow.at > POSTGRES_SECONDS_MAX] == []
    eventually(lambda: answers(product))
    for user in users():
        eventually(lambda user=user: product.flush(user)["pending"] == 0)
        assert product.flush(user)["failed"] == 0
        assert_kept_once(user, [chat for chat in load.chats if chat.user == user], blows, kept_of(product, user))


def answers(product: Product) -> bool:
    """Whether the API does, which may have been the last part that was hit."""
    try:
        return httpx.get(f"{product.api}/healthz", timeout=30).is_success
    except httpx.TransportError:
        return False


def strike(victims: Victims, signs: Sequence[signal.Signals], *, seconds: float) -> list[Blow]:
    """One process after the other, of any part; the next one once Envoy sees both filters again."""
    chance, until, blows = random.Random(SEED), time.monotonic() + seconds, list[Blow]()
    for part, sign in zip(itertools.cycle(victims.parts), itertools.cycle(signs)):
        time.sleep(EVERY_SECONDS)
        eventually(lambda: is_whole(victims.product))
        if time.monotonic() > until and len(blows) >= len(victims.parts):
            return blows
        if part not in victims.servers:
            eventually(lambda part=part: victims.product.children(part))
        at = time.monotonic()
        victims.hit(part, sign, chance)
        blows.append(Blow(part, sign, at, time.monotonic()))
    raise AssertionError("a cycle has no end")


def assert_kept_once(user: str, chats: Sequence[Chat], blows: Sequence[Blow], kept: Kept) -> None:
    due = [chat for chat in chats if not any(blow.may_have_cost_the_turn_of(chat) for blow in blows)]
    lost = [chat for chat in due if chat.said not in kept.closed]
    assert lost == [], sorted(blows, key=lambda blow: abs(blow.at - lost[0].ended))  # the nearest first
    assert len(due) > len(chats) // 2, "too few are left to judge by"
    assert {said: times for said, times in kept.said.items() if times > 1} == {}, f"turns of {user} twice"
    stated = sentences([said for said in kept.closed if "locker" not in said])
    memories = [memory for memory in kept.memories.elements() if "locker" not in memory]
    assert stated - sentences(memories) == set(), f"statements of {user} were not learnt"
    assert len(memories) == len(sentences(memories)), f"memories of {user} twice"
