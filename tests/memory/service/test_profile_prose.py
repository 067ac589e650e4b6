"""When prose takes the place of a profile's lines: it says what they say, in fewer words, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from chat_server import FakeModelServer, running_chat_server
from hypothesis import given, settings
from hypothesis import strategies as st
from library_parts import Parts
from prometheus_client import CollectorRegistry
from token_counts import counted_tokens

from memory.adapters.models.chat_writer import ChatWriter
from memory.adapters.models.openai_chat import ChatServer, OpenAiChatModel
from memory.errors import Late, Unavailable
from memory.language.specific_words import specific_words
from memory.model import Profile, ProfileLine, ProfileProse, ProfileSentence, Scope
from memory.ports.writing import GroundedSentence
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics
from memory.service import prose_writing
from memory.service.profile_layout import FOOT, HEAD, PROFILE_TOKENS_MAX, PROSE_HEAD, profile_text
from memory.service.profile_prose import TASK, material, prose_faults, prose_of
from memory.service.prose_writing import (
    PROFILE_PAUSE_SECONDS,
    SETTLED_SECONDS,
    TRIES_MAX,
    ProfileProseWriting,
)
from memory.service.requests import NewMemory

TOKENS = counted_tokens()


def line(said: str, memory_id: str, month: str = "2025-06") -> ProfileLine:
    text = f"- [{month}] {said}"
    return ProfileLine(text, TOKENS(text), memory_id)


LINES = (
    line("My name is Dana", "m1", "2024-03"),
    line("I live in Leeds", "m2"),
    line("I work as a nurse at St. Mary's since 2019", "m3"),
    line("I do not eat meat", "m4"),
)
GOOD = (
    GroundedSentence("My name is Dana and I live in Leeds.", (1, 2)),
    GroundedSentence("I work as a nurse at St. Mary's since 2019 and do not eat meat.", (3, 4)),
)


def faults(*sentences: GroundedSentence, lines: tuple[ProfileLine, ...] = LINES) -> str:
    return "; ".join(prose_faults(sentences, lines, tokens=TOKENS))


def test_the_writer_gets_the_statements_with_their_months() -> None:
    assert material(LINES)[:2] == ["(2024-03) My name is Dana", "(2025-06) I live in Leeds"]
    assert "{" not in TASK.instruction, "the form of the answer is the adapter's"


def test_prose_that_says_what_the_lines_say_is_used_with_the_evidence_of_each_sentence() -> None:
    assert faults(*GOOD) == ""
    assert [(one.text, one.memory_ids) for one in prose_of(GOOD, LINES, tokens=TOKENS)] == [
        ("My name is Dana and I live in Leeds. (2024-03 to 2025-06)", ("m1", "m2")),
        ("I work as a nurse at St. Mary's since 2019 and do not eat meat. (2025-06)", ("m3", "m4")),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("My name is Dana and I live in York.", "do not say: york"),
        ("My name is Dana and I live in Leeds since 2020.", "do not say: 2020"),
        ("Miu and my name is Dana and I live in Leeds.", "do not say: miu"),
        ("My name is Dana and I live somewhere.", "line 2 loses"),
        ("I am Dana and I live in Leeds.", "line 1 loses: name"),
        ("My name is Dana, in Leeds.", "line 2 loses: live"),
        ("My name is Dana and I do not live in Leeds.", "say yes where it says no"),
        ("Dana adores sunny Leeds, strolling happily through countless charming museums.", "keep to the words"),
        ("My name is Dana and I live in Leeds. </profile>", "without < and >"),
        ("My name is Dana [INST] and I live in Leeds.", "without < and >"),
        ("My name is Dana and I live in Leeds. " * 20, "plain sentences"),
    ],
)
def test_prose_that_says_anything_else_is_not(text: str, fault: str) -> None:
    assert fault in faults(GroundedSentence(text, (1, 2)), GOOD[1])


def test_every_line_is_in_it_also_a_denial() -> None:
    assert faults(GOOD[0]) == "line 3 is left out; line 4 is left out"
    assert faults() == "there is no sentence"
    works = "I work as a nurse at St. Mary's since 2019"
    assert "line 4 is left out" in faults(GOOD[0], GroundedSentence(f"{works} and do not eat meat.", (3,)))
    assert "the other way round" in faults(GOOD[0], GroundedSentence(f"{works} and eat meat.", (3, 4)))


def test_a_number_is_not_part_of_another_one_and_prose_not_longer_than_the_lines() -> None:
    lines = (line("My locker is 17", "a"), line("I own 117 records", "b"))
    assert "do not say: 17" in faults(GroundedSentence("I own 17 records", (2,)), lines=lines)
    lines = (line("I sew", "a"), line("I row", "b"))
    long = (GroundedSentence("I sew, I sew, I sew, I sew and I sew.", (1,)), GroundedSentence("I row, row, row.", (2,)))
    assert "longer than the lines" in faults(*long, lines=lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I'm Dana. We moved to Leeds-North in 2019.", {"dana", "leeds-north", "2019"}),
        ("Rex is Sam's dog", {"rex", "sam"}),
        ("my rent is $1,130.50", {"1,130.50"}),
        ("I like tea", set()),
        ("我住在北京，房租3000元", {"3000"}),
        ("", set()),
    ],
)
def test_names_and_numbers_are_found(text: str, words: set[str]) -> None:
    assert specific_words(text) == words


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=60), st.lists(st.integers(1, 4), min_size=1)), max_size=5))
def test_whatever_a_writer_answers_is_judged_without_an_error(answer: list[tuple[str, list[int]]]) -> None:
    sentences = [GroundedSentence(text, tuple(sources)) for text, sources in answer]
    assert prose_faults(sentences, LINES, tokens=TOKENS)


# In a prompt

WRITTEN = ProfileProse(prose_of(GOOD, LINES, tokens=TOKENS), "m profile-1")
OWN = Profile("u", version=3, lines=LINES, prose=WRITTEN, pinned=(ProfileLine("- Use SI units", 5),))


def test_a_prompt_gets_the_prose_after_pinned_lines_that_stay_as_they_are() -> None:
    text = profile_text(OWN, None, tokens=TOKENS)
    assert text is not None
    assert text.text == "\n".join([PROSE_HEAD, "- Use SI units", *(one.text for one in WRITTEN.sentences), FOOT])
    assert text.memory_ids == ("m1", "m2", "m3", "m4")
    assert TOKENS(text.text) <= text.tokens <= PROFILE_TOKENS_MAX


def test_prose_that_does_not_fit_beside_pinned_lines_gives_way_to_the_lines_that_do() -> None:
    pinned = ProfileLine("- " + "word " * 110, 112)
    long = ProfileProse((ProfileSentence("I " * 80, 80, ("m1", "m2", "m3", "m4")),))
    text = profile_text(Profile("u", lines=LINES, pinned=(pinned,), prose=long), None, tokens=TOKENS)
    assert text is not None
    assert "I live in Leeds" in text.text
    assert text.text.startswith(HEAD)
    assert text.tokens <= PROFILE_TOKENS_MAX


# In the background, from settled lines, by a model that a test decides

SAID = ("I prefer green tea", "I prefer tabs", "I prefer answers in metric units")
PROSE = "I prefer green tea, tabs and answers in metric units."


def united(body: dict[str, Any]) -> str:
    """An answer that unites all lines that it was given."""
    lines = body["messages"][1]["content"].splitlines()
    text = PROSE if len(lines) == len(SAID) else "I prefer many things."
    return json.dumps({"sentences": [{"text": text, "lines": list(range(1, len(lines) + 1))}]})


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
            tokens=counted_tokens(),
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


async def test_neither_lines_that_still_change_nor_a_few_are_written(
    parts: Parts, written: Written, server: FakeModelServer
) -> None:
    await told(parts, *SAID[:2])
    assert await written.task.write_next()
    assert not await written.task.write_next()
    assert server.asked == []
    await told(parts, SAID[2])
    parts.now -= 1
    assert not await written.task.write_next()
    parts.now += 1
    assert await written.task.write_next()
    assert len(server.asked) == 1


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


async def test_a_faulty_profile_holds_up_no_other_and_is_given_up(
    parts: Parts, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(lines: Sequence[ProfileLine]) -> list[str]:
        if any("heron" in line.text for line in lines):
            raise RuntimeError("a test")
        return material(lines)

    monkeypatch.setattr(prose_writing, "material", broken)
    await told(parts, *SAID)
    parts.now += 1  # the faulty one is the newest
    await parts.library.add(
        Scope("bob"), [NewMemory(f"I prefer herons of kind {kind}", category="preference") for kind in "ABC"]
    )
    await parts.library.profiles.refresh("bob")
    parts.now += SETTLED_SECONDS
    with pytest.raises(RuntimeError):
        await written.task.write_next()
    assert await written.task.write_next()
    assert (await written.profile()).prose is not None
    assert not await written.task.write_next(), "it pauses"
    parts.now += PROFILE_PAUSE_SECONDS
    with pytest.raises(RuntimeError):
        await written.task.write_next()
    parts.now += PROFILE_PAUSE_SECONDS
    assert await written.task.write_next(), "it is given up"
    parts.now += PROFILE_PAUSE_SECONDS
    assert not await written.task.write_next()
    assert (written.count("written"), written.count("not_written")) == (1.0, 1.0)


async def test_it_runs_in_the_background_until_told_to_stop(
    parts: Parts, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose_writing, "POLL_SECONDS", 0.02)
    until = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(written.task.run(until))
        await told(parts, *SAID)
        while (await written.profile()).prose is None:
            await asyncio.sleep(0.02)
        until.set()
    assert written.count("written") == 1


async def test_nothing_is_asked_of_a_model_about_a_user_who_has_opted_out(
    parts: Parts, written: Written, server: FakeModelServer
) -> None:
    await told(parts, *SAID)
    await parts.library.opt_outs.opt_out("ann")
    while await written.task.write_next():
        continue
    assert server.asked == []
    assert (await written.profile()).prose is None
