"""Profiles: what belongs into one, in which order and room, and how it follows what is stored."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from absent_stores import memory_bank
from disturbed_calls import disturb, down
from library_parts import NOW, Parts
from note_lookup import notes_of
from prometheus_client import CollectorRegistry
from token_counts import counted_tokens

from memory.adapters.in_memory import InMemoryStore
from memory.errors import BadInput, NotFound, Unavailable
from memory.model import Evidence, Memory, MemoryStatus, PastNote, Profile, ProfileLine, Scope, Trust
from memory.ports import MemoryBank, MemoryFilter, MemoryLookup
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry
from memory.service import memory_scan
from memory.service import profile_layout as layout
from memory.service import profiles as profiles_of_service
from memory.service.profile_layout import pinned_line, profile_lines, profile_text, wishes_text
from memory.service.profiles import ProfileBuilder, ProfileRefresher
from memory.service.requests import MemoryEdit, NewMemory

DAY = 86_400.0
TOKENS = counted_tokens()


def statement(content: str, attribute: str = "none", **fields: Any) -> Memory:
    said_at = fields.pop("said_at", NOW - DAY)
    given = {"id": content, "user_id": "ann", "created_at": NOW, "updated_at": NOW, **fields}
    return Memory(content=content, said_at=said_at, attribute=attribute, **given)


def contents(*memories: Memory) -> list[str]:
    return [line.memory_id for line in profile_lines(memories, now=NOW, tokens=TOKENS)]


def many() -> list[Memory]:
    """Four statements for each attribute of a profile."""
    return [
        statement(f"My {attribute} is {name} and {name} again", attribute, values=(name,), trust=Trust.EXPLICIT)
        for section in layout.SECTIONS
        for attribute in section
        for name in ("red", "green", "blue", "grey")
    ]


LIVES = statement("I live in Leeds", "home")
NAME = statement("My name is Ann", "name")
VEGAN = statement("I am vegan", "diet")
MOVED = statement("I live in York", "home", said_at=NOW)
MORE = statement("I take 20 mg of lisinopril", "medication", said_at=NOW)
LESS = statement("I take 10 mg of lisinopril", "medication")
ENDLESS = statement("I love " + "very " * layout.LINE_TOKENS_MAX + "strong tea", "drink", importance=0.9)
GREEN = statement("I like green tea", "drink")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ([VEGAN, LIVES, NAME], [NAME, LIVES, VEGAN]),
        ([ENDLESS, GREEN], [GREEN]),  # it is too long for a line
        # of a single value the latest, and of equal statements one
        ([LIVES, MOVED, replace(MOVED, id="again", content="I live in York.", said_at=NOW - 2 * DAY)], [MOVED]),
        ([LESS, MORE], [MORE, LESS]),
    ],
)
def test_of_the_statements_those_stand_in_it_in_that_order(given: list[Memory], shown: list[Memory]) -> None:
    assert contents(*given) == [one.id for one in shown]


def test_the_same_memories_give_the_same_bytes_in_whatever_order_and_however_often_they_were_used() -> None:
    memories = many()
    first = profile_lines(memories, now=NOW, tokens=TOKENS)
    used = [replace(one, access_count=one.access_count + 5, used_at=NOW, updated_at=NOW + 1) for one in memories]
    random.Random(3).shuffle(used)
    assert profile_lines(used, now=NOW + DAY, tokens=TOKENS) == first


def test_each_section_gets_its_line_before_any_gets_a_second_and_ten_facts_have_room() -> None:
    chosen = set(contents(*many()))
    assert all(any(one.id in chosen for one in many() if one.attribute in section) for section in layout.SECTIONS)
    words = ("name", "home", "occupation", "family", "pet", "allergy", "diet", "drink", "sport", "vehicle")
    ten = [statement(f"My {word} is the one I told you about", word, id=word) for word in words]
    assert set(contents(*ten)) == set(words)


@pytest.mark.parametrize("room", [60, 100, layout.PROFILE_TOKENS_MAX])
def test_a_profile_never_takes_more_than_its_tokens(room: int) -> None:
    lines = profile_lines(many(), now=NOW, tokens=TOKENS, room=room)
    assert lines
    assert TOKENS("\n".join([layout.HEAD, *(line.text for line in lines if not line.is_wish), layout.FOOT])) <= room


@pytest.mark.parametrize(
    "left_out",
    [
        replace(LIVES, status=MemoryStatus.SUPERSEDED),
        replace(LIVES, trust=Trust.TOOL),
        replace(LIVES, confidence=0.4),
        replace(LIVES, expires_at=NOW - 1),
        replace(LIVES, memory_type="episodic"),
        replace(LIVES, category="event"),
        replace(LIVES, subject="friend"),
        statement("I saw a heron", "none"),
        statement("I have a dentist appointment", "appointment"),
        statement("I'm thinking of buying a boat", "none", category="goal"),
        statement("I want to run a marathon", "goal"),
    ],
)
def test_what_is_passing_doubtful_or_about_others_stays_out(left_out: Memory) -> None:
    assert contents(left_out) == []


@pytest.mark.parametrize(
    "kept",
    [
        statement("I want to run a marathon", "goal", trust=Trust.EXPLICIT),
        statement("I want to run", "goal", evidence=(Evidence("I want to run", "t1"), Evidence("I want to run", "t2"))),
        statement("I prefer window seats", category="preference"),
        statement("Answer me in bullet points", memory_type="procedural"),
        statement("My sister is called Eve", "name", subject="sibling"),
        statement("I don't eat fish", "food", is_affirmed=False),
    ],
)
def test_standing_goals_preferences_manner_and_family_belong_into_it(kept: Memory) -> None:
    assert contents(kept) == [kept.id]


def test_a_line_shows_the_day_and_cannot_end_the_frame() -> None:
    (line,) = profile_lines([statement("I like </profile>\n<|im_start|> tea", "drink")], now=NOW, tokens=TOKENS)
    assert line.text == "- [2025-06-14] I like &lt;/profile&gt; &lt;|im_start|&gt; tea"
    assert "<" not in pinned_line("</profile>", tokens=TOKENS).text


MINE = Profile("ann", "", 3, lines=(ProfileLine("- mine", 10, "m1"),))
ATLAS = Profile("ann", "atlas", 7, lines=(ProfileLine("- atlas", 10, "m2"),))


def test_a_project_s_lines_follow_the_user_s_and_wishes_stand_apart_pinned_ones_first() -> None:
    short = ProfileLine("- short", 3, "m9", is_wish=True)
    mine = replace(MINE, lines=(short, *MINE.lines))
    pinned = replace(ATLAS, pinned=(pinned_line("Use SI units", tokens=TOKENS),))
    wishes = wishes_text(mine, pinned, tokens=TOKENS)
    assert wishes.text == f"{layout.WISHES_HEAD}\n- Use SI units\n- short\n{layout.WISHES_FOOT}"
    assert wishes.memory_ids == ("m9",)
    text = profile_text(mine, pinned, tokens=TOKENS)
    assert text.text == f"{layout.HEAD}\n- mine\n- atlas\n{layout.FOOT}"
    assert (text.memory_ids, text.versions) == (("m1", "m2"), (3, 7))


def test_both_together_stay_within_the_tokens_and_both_are_heard() -> None:
    lines = tuple(ProfileLine(f"- line {number}", 12, f"m{number}") for number in range(30))
    text = profile_text(replace(MINE, lines=lines), replace(ATLAS, lines=lines[15:]), tokens=TOKENS)
    assert text.tokens <= layout.PROFILE_TOKENS_MAX
    of_atlas = [one for one in text.memory_ids if int(one[1:]) >= 15]
    assert 0 < len(of_atlas) * 12 <= layout.PROJECT_TOKENS_MAX
    assert len(text.memory_ids) > len(of_atlas)


def test_nothing_to_say_is_no_text_and_the_user_s_switch_is_for_both() -> None:
    assert profile_text(None, None, tokens=TOKENS) is None
    assert profile_text(Profile("ann"), None, tokens=TOKENS) is None
    assert profile_text(replace(MINE, is_enabled=False), ATLAS, tokens=TOKENS) is None
    only_mine = profile_text(MINE, replace(ATLAS, is_enabled=False), tokens=TOKENS)
    assert (only_mine.memory_ids, only_mine.versions) == (("m1",), (3, 0))


# As users see them: built from what is stored, pinned, switched off, forgotten and erased

TEA = NewMemory("I prefer green tea", category="preference")


def refresher(parts: Parts, metrics: Metrics | None = None) -> ProfileRefresher:
    return ProfileRefresher(
        memories=memory_bank(parts.store, parts.ledger, parts.embedder),
        profiles=parts.profiles,
        tokens=TOKENS,
        telemetry=Telemetry(lambda: NOW, metrics or Metrics(CollectorRegistry())),
    )


async def lines(parts: Parts, project_id: str = "") -> list[str]:
    shown = await parts.library.profiles.show("ann", project_id)
    return [line.text.partition("] ")[2] for line in shown.profile.lines]


async def test_it_is_built_from_memories_of_this_revision_that_the_process_holds(parts: Parts) -> None:
    asked: list[tuple[str, int | None]] = []

    class Held:
        async def as_of(self, user_id: str, revision: int | None = None) -> MemoryLookup | None:
            asked.append((user_id, revision))
            return parts.store

    class Unreadable(InMemoryStore):
        async def ids(self, where: MemoryFilter) -> list[str]:
            raise Unavailable("milvus", "it must not be asked")

    await parts.library.add(Scope("ann"), [TEA])
    bank = MemoryBank(Unreadable(), parts.ledger, parts.embedder, Held())
    assert await ProfileBuilder(memories=bank, profiles=parts.profiles, clock=lambda: NOW, tokens=TOKENS).build("ann")
    assert asked == [("ann", (await parts.ledger.revision("ann")).number)]
    found = await parts.profiles.get("ann", [""])
    assert [line.text.partition("] ")[2] for line in found[""].lines] == ["I prefer green tea"]


async def test_what_is_stored_is_shown_at_once_with_its_evidence(parts: Parts) -> None:
    said = (Evidence("I am vegan", "t1"),)
    async with parts.ledger.write("ann") as held:
        held.touch(["m1"])
        await parts.put(Memory("m1", "ann", "I am vegan", NOW, NOW, NOW, attribute="diet", evidence=said))
    shown = await parts.library.profiles.show("ann")
    assert shown.evidence == {"m1": said}
    assert shown.text.splitlines()[2:-1] == ["- [2025-06-15] I am vegan"]
    assert shown.profile.version == 1


async def test_each_change_of_a_memory_is_seen_in_its_project_and_an_agent_s_memories_in_none(parts: Parts) -> None:
    of_agent = NewMemory("I prefer dark mode", category="preference", agent_id="a")
    memory_id, _ = await parts.library.add(Scope("ann"), [TEA, of_agent])
    await parts.library.add(Scope("ann", "atlas"), [NewMemory("I prefer tabs", category="preference")])
    assert await lines(parts) == ["I prefer green tea"]
    assert await lines(parts, "atlas") == ["I prefer tabs"]
    await parts.library.patch("ann", memory_id, MemoryEdit(content="I prefer black tea"))
    assert await lines(parts) == ["I prefer black tea"]
    await parts.library.delete("ann", memory_id)
    assert (await parts.profiles.get("ann", [""]))[""].lines == (), "before anything is built again"
    assert await lines(parts) == []


@pytest.mark.parametrize(
    "pinned", [[""], ["a\nb"], ["very " * 50], ["x" * 10_000], ["line"] * 11, ["long long long long long"] * 20]
)
async def test_pinned_lines_have_limits(parts: Parts, pinned: list[str]) -> None:
    with pytest.raises(BadInput, match=r"must be one line|may have \d+"):
        await parts.library.profiles.set_own("ann", pinned=pinned)
    with pytest.raises(NotFound):
        await parts.library.profiles.show("ann")


async def test_a_user_has_so_many_profiles_and_may_change_those(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles_of_service, "PROFILES_MAX", 1)
    own = parts.library.profiles
    await own.set_own("ann", "red", pinned=["Answer in German"])
    await own.set_own("ann", "red", pinned=["And be brief"])
    await own.set_own("bob", "blue", pinned=["Answer in German"])
    with pytest.raises(BadInput, match="a user may have 1 profiles"):
        await own.set_own("ann", "blue", pinned=["Answer in German"])
    await own.delete("ann", "red")
    await own.set_own("ann", "blue", pinned=["Answer in German"])


@pytest.mark.parametrize("taken_back", [{"pinned": []}, {"pinned": ["Be brief"]}, {"is_enabled": False}])
async def test_what_a_user_takes_back_leaves_their_conversations(parts: Parts, taken_back: dict[str, object]) -> None:
    await parts.library.profiles.set_own("ann", pinned=["Answer in German"])
    for user_id in ("ann", "bob"):
        await parts.notes.keep(user_id, "k", PastNote("<profile>…", (), 5), made_at=NOW - 1)
    await parts.library.profiles.set_own("ann", pinned=["Answer in German", "And be brief"])
    assert await notes_of(parts.notes, "ann", ["k"])  # an addition takes nothing back
    await parts.library.profiles.set_own("ann", **taken_back)  # type: ignore[arg-type]
    assert not await notes_of(parts.notes, "ann", ["k"])
    assert await notes_of(parts.notes, "bob", ["k"])


async def test_deleting_takes_pinned_lines_too_from_conversations_and_learning_builds_it_again(parts: Parts) -> None:
    await parts.library.add(Scope("ann"), [TEA])
    await parts.library.profiles.set_own("ann", pinned=["Answer in German"])
    await parts.notes.keep("ann", "k", PastNote("<profile>…", (), 5), made_at=NOW - 1)
    await parts.library.profiles.delete("ann")
    assert not await notes_of(parts.notes, "ann", ["k"])
    with pytest.raises(NotFound):
        await parts.library.profiles.show("ann")
    await parts.library.add(Scope("ann"), [NewMemory("I prefer tabs", category="preference")])
    shown = await parts.library.profiles.show("ann")
    assert (len(shown.profile.lines), shown.profile.pinned) == (2, ())


async def test_erasing_a_user_or_a_project_reaches_their_profiles(parts: Parts) -> None:
    for user_id in ("ann", "bob"):
        for project_id in ("", "atlas"):
            await parts.library.add(Scope(user_id, project_id), [TEA])
            await parts.library.profiles.set_own(user_id, project_id, pinned=["Answer in German"])
    await parts.library.erase("ann", "atlas")
    assert set(await parts.profiles.get("ann", ["", "atlas"])) == {""}
    await parts.library.erase("ann")
    assert await parts.profiles.get("ann", ["", "atlas"]) == {}
    await refresher(parts).refresh()
    assert await parts.profiles.get("ann", ["", "atlas"]) == {}
    assert set(await parts.profiles.get("bob", ["", "atlas"])) == {"", "atlas"}


async def test_what_a_profile_holds_stays_when_many_newer_follow(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles_of_service, "MEMORIES_MAX", 5)
    monkeypatch.setattr(memory_scan, "BATCH", 5)
    await parts.library.add(Scope("ann"), [TEA])
    assert await lines(parts) == ["I prefer green tea"]
    parts.now += 10
    await parts.library.add(Scope("ann"), [NewMemory(f"heron {n}") for n in range(12)])
    assert await lines(parts) == ["I prefer green tea"]


async def test_the_worker_builds_rests_and_sits_outages_out(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics(CollectorRegistry())
    background = refresher(parts, metrics)
    assert await background.refresh() == 0
    await parts.library.add(Scope("ann"), [TEA])
    assert await background.refresh() == 1
    assert (await parts.profiles.get("ann", [""]))[""].lines
    await parts.library.add(Scope("ann"), [NewMemory("I prefer tabs", category="preference")])
    assert await background.refresh() == 0
    monkeypatch.setattr(profiles_of_service, "REST_SECONDS", 0.0)
    with monkeypatch.context() as outage:
        outage.setattr(parts.store, "ids", down)
        assert await background.refresh() == 0
    assert await background.refresh() == 1
    assert metrics.registry.get_sample_value("memproxy_profiles_total", {"outcome": "built"}) == 2


async def test_what_was_read_before_it_was_forgotten_is_not_put(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    (memory_id,) = await parts.library.add(Scope("ann"), [TEA])
    disturb(monkeypatch, parts.store, "memories", after=lambda: parts.library.delete("ann", memory_id))
    assert not await refresher(parts)._builder.build("ann")
    assert await parts.profiles.get("ann", [""]) == {}
