"""Profiles in prose as they come about: in the background, from settled lines, by a model that a test decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import FakeModelServer, running_chat_server
from library_parts import Parts, library_parts
from prometheus_client import CollectorRegistry

from memory.adapters.models.chat_writer import ChatWriter
from memory.adapters.models.openai_chat import ChatServer, OpenAiChatModel
from memory.adapters.models.wordpiece import WordPieceTokens
from memory.errors import Late, Unavailable
from memory.model import Profile, ProfileLine, ProfileProse, Scope
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics
from memory.service import prose_writing
from memory.service.profile_layout import HEAD, PROSE_HEAD
from memory.service.profile_prose import material
from memory.service.prose_writing import (
    PROFILE_PAUSE_SECONDS,
    SETTLED_SECONDS,
    TRIES_MAX,
    ProfileProseWriting,
)
from memory.service.requests import NewMemory

SAID = ("I prefer green tea", "I prefer tabs", "I prefer answers in metric units")
PROSE = "I prefer green tea, tabs and answers in metric units."


def united(body: dict[str, Any]) -> str:
    """An answer that unites all lines that it was given."""
    lines = body["messages"][1]["content"].splitlines()
    text = PROSE if len(lines) == len(SAID) else "I prefer many things."
    return json.dumps({"sentences": [{"text": text, "lines": list(range(1, len(lines) + 1))}]})


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as built:
        yield built


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with running_chat_server() as running:
        running.says = united
        yield running


class Written:
    """The writing of one deployment, and what its metrics say."""

    def __init__(self, parts: Parts, model: OpenAiChatModel, *, seconds: float = 5.0) -> None:
        self.parts = parts
        self.metrics = Metrics(CollectorRegistry())
        self.task = ProfileProseWriting(
            profiles=parts.profiles,
            writer=ChatWriter(model, name="m", seconds=seconds, answer_tokens_max=400),
            tokens=WordPieceTokens(),
            instruments=Instruments(lambda: parts.now, self.metrics),
            opt_outs=parts.opt_outs,
        )

    def count(self, outcome: str) -> float:
        return self.metrics.registry.get_sample_value("memproxy_profiles_total", {"outcome": outcome}) or 0.0

    async def profile(self) -> Profile:
        return (await self.parts.profiles.get("ann", [""]))[""]


@pytest.fixture
async def written(parts: Parts, server: FakeModelServer) -> AsyncIterator[Written]:
    async with OpenAiChatModel(ChatServer(server.url, "m")) as model:
        yield Written(parts, model)


async def told(parts: Parts, *said: str) -> list[str]:
    """Memories with these words, the profile built from them, and some time later."""
    ids = await parts.library.add(Scope("ann"), [NewMemory(one, category="preference") for one in said])
    await parts.library.profiles.refresh("ann")
    parts.now += SETTLED_SECONDS
    return ids


async def test_the_layout_is_shown_until_prose_is_written_and_then_that_until_a_line_changes(
    parts: Parts, written: Written, server: FakeModelServer
) -> None:
    await told(parts, *SAID)
    shown = await parts.library.profiles.show("ann")
    assert shown.text.startswith(HEAD)
    assert await written.task.write_next()
    in_prose = await parts.library.profiles.show("ann")
    assert in_prose.text.splitlines()[1:-1] == [*PROSE_HEAD.splitlines()[1:], f"{PROSE} (2025-06)"]
    assert in_prose.profile.version == shown.profile.version + 1
    assert in_prose.profile.prose is not None
    assert in_prose.profile.prose.made_by.startswith("m profile-")
    assert in_prose.tokens < shown.tokens
    await parts.library.add(Scope("ann"), [NewMemory("The heron stood on one leg")])
    await parts.library.profiles.refresh("ann")
    parts.now += SETTLED_SECONDS
    assert not await written.task.write_next(), "its lines are the same"
    assert len(server.asked) == 1
    assert (await parts.library.profiles.show("ann")).text == in_prose.text


async def test_lines_that_still_change_are_not_written(parts: Parts, written: Written) -> None:
    await told(parts, *SAID)
    parts.now -= 1
    assert not await written.task.write_next()
    parts.now += 1
    assert await written.task.write_next()


async def test_forgetting_one_memory_ends_the_prose_and_it_is_written_again_without_it(
    parts: Parts, written: Written, server: FakeModelServer
) -> None:
    ids = await told(parts, *SAID, "I prefer window seats")
    four = "I prefer green tea, tabs, window seats and answers in metric units."
    server.says = lambda body: json.dumps({"sentences": [{"text": four, "lines": [1, 2, 3, 4]}]})
    assert await written.task.write_next()
    assert (await written.profile()).prose is not None
    await parts.library.delete("ann", ids[3])
    assert (await written.profile()).prose is None
    assert "window" not in (await parts.library.profiles.show("ann")).text
    parts.now += SETTLED_SECONDS
    server.says = united
    assert await written.task.write_next()
    assert "window" not in json.dumps(server.asked[-1]["messages"])
    assert PROSE in (await parts.library.profiles.show("ann")).text


async def test_prose_that_was_being_written_when_a_memory_was_forgotten_is_not_stored(
    parts: Parts, written: Written, server: FakeModelServer
) -> None:
    ids = await told(parts, *SAID)
    server.seconds = 0.3
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(written.task.write_next())
        while not server.asked:
            await asyncio.sleep(0.01)
        await parts.library.delete("ann", ids[0])
    assert writing.result()
    assert (await written.profile()).prose is None


@pytest.mark.parametrize(
    "said",
    [
        "Ahoy!",
        json.dumps({"sentences": [{"text": "I prefer green tea and tabs.", "lines": [1, 2]}]}),
        json.dumps({"sentences": [{"text": PROSE.replace("green tea", "green tea from Assam"), "lines": [1, 2, 3]}]}),
    ],
)
async def test_what_the_lines_do_not_say_leaves_the_layout_and_is_not_asked_for_again(
    parts: Parts, written: Written, server: FakeModelServer, said: str
) -> None:
    server.says, server.content = None, said
    await told(parts, *SAID)
    assert await written.task.write_next()
    assert not await written.task.write_next()
    assert len(server.asked) == 2, "once, and once sent back"
    assert ((await written.profile()).prose, written.count("not_written")) == (None, 1.0)
    assert (await parts.library.profiles.show("ann")).text.startswith(HEAD)


async def test_a_few_lines_are_short_enough_as_they_are(
    parts: Parts, written: Written, server: FakeModelServer
) -> None:
    await told(parts, *SAID[:2])
    assert await written.task.write_next()
    assert not await written.task.write_next()
    assert server.asked == []


async def test_an_outage_is_waited_out_and_a_profile_that_takes_too_long_stays_as_it_is(
    parts: Parts, server: FakeModelServer
) -> None:
    await told(parts, *SAID)
    async with OpenAiChatModel(ChatServer(server.url, "m")) as model:
        written = Written(parts, model, seconds=0.2)
        server.status = 503
        for _ in range(TRIES_MAX + 1):
            with pytest.raises(Unavailable):
                await written.task.write_next()
            parts.now += PROFILE_PAUSE_SECONDS
        server.status, server.seconds = 200, 30.0
        with pytest.raises(Late):
            await written.task.write_next()
        assert not await written.task.write_next(), "it pauses"
        parts.now += PROFILE_PAUSE_SECONDS
        assert await written.task.write_next()
        assert not await written.task.write_next()
        assert written.count("not_written") == 1


@pytest.mark.parametrize("fault", [RuntimeError, ValueError])
async def test_a_faulty_profile_holds_up_no_other_and_is_given_up(
    parts: Parts, written: Written, monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    def broken(lines: Sequence[ProfileLine]) -> list[str]:
        if any("heron" in line.text for line in lines):
            raise fault("a test")
        return material(lines)

    monkeypatch.setattr(prose_writing, "material", broken)
    await told(parts, *SAID)
    parts.now += 1  # the faulty one is the newest
    await parts.library.add(
        Scope("bob"), [NewMemory(f"I prefer herons of kind {kind}", category="preference") for kind in "ABC"]
    )
    await parts.library.profiles.refresh("bob")
    parts.now += SETTLED_SECONDS
    with pytest.raises(fault):
        await written.task.write_next()
    assert await written.task.write_next()
    assert (await written.profile()).prose is not None
    assert not await written.task.write_next(), "it pauses"
    parts.now += PROFILE_PAUSE_SECONDS
    with pytest.raises(fault):
        await written.task.write_next()
    parts.now += PROFILE_PAUSE_SECONDS
    assert await written.task.write_next(), "it is given up"
    parts.now += PROFILE_PAUSE_SECONDS
    assert not await written.task.write_next()
    assert (written.count("written"), written.count("not_written")) == (1.0, 1.0)


async def test_a_refused_text_is_not_written_again_at_once(
    parts: Parts, written: Written, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(profile: Profile, prose: ProfileProse | None) -> bool:
        return False

    await told(parts, *SAID)
    monkeypatch.setattr(parts.profiles, "put_prose", refused)
    for _ in range(5):
        await written.task.write_next()
    assert len(server.asked) == 1


async def test_it_runs_in_the_background_until_told_to_stop(
    parts: Parts, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose_writing, "POLL_SECONDS", 0.02)
    until = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(written.task.run(until))
        await told(parts, *SAID)
        while (await written.profile()).prose is None:
            await asyncio.sleep(0.02)
        until.set()
    assert written.count("written") == 1


async def test_erasing_a_user_reaches_the_prose(parts: Parts, written: Written) -> None:
    await told(parts, *SAID)
    assert await written.task.write_next()
    await parts.library.delete_scope("ann")
    assert await parts.profiles.get("ann", [""]) == {}


async def test_nothing_is_asked_of_a_model_about_a_user_who_has_opted_out(
    parts: Parts, written: Written, server: FakeModelServer
) -> None:
    await told(parts, *SAID)
    await parts.library.opt_outs.opt_out("ann")
    while await written.task.write_next():
        continue
    assert server.asked == []
    assert (await written.profile()).prose is None
