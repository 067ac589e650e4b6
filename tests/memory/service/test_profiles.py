"""Profiles as users see them: built from what is stored, pinned, switched off, forgotten and erased."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from library_parts import NOW, Parts, library_parts
from prometheus_client import CollectorRegistry

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.models.wordpiece import WordPieceTokens
from memory.errors import BadInput, NotFound, Unavailable
from memory.model import Evidence, Memory, PastNote, Scope
from memory.ports import MemoryBank, MemoryFilter, MemoryLookup, Page
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics
from memory.service import profile_refresher
from memory.service import profiles as profiles_of_service
from memory.service.profile_refresher import ProfileRefresher
from memory.service.profiles import ProfileBuilder
from memory.service.requests import MemoryEdit, NewMemory

TEA = NewMemory("I prefer green tea", category="preference")


@pytest_asyncio.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as built:
        yield built


def refresher(parts: Parts, metrics: Metrics | None = None) -> ProfileRefresher:
    return ProfileRefresher(
        memories=MemoryBank(parts.store, parts.ledger, parts.embedder),
        profiles=parts.profiles,
        tokens=WordPieceTokens(),
        instruments=Instruments(lambda: NOW, metrics or Metrics(CollectorRegistry())),
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
        async def page(self, where: MemoryFilter, *, limit: int, cursor: str = "") -> Page:
            raise Unavailable("milvus", "it must not be asked")

    await parts.library.add(Scope("ann"), [TEA])
    bank = MemoryBank(Unreadable(), parts.ledger, parts.embedder, Held())
    builder = ProfileBuilder(memories=bank, profiles=parts.profiles, clock=lambda: NOW, tokens=WordPieceTokens())
    assert await builder.build("ann")
    assert asked == [("ann", (await parts.ledger.revision("ann")).number)]
    found = await parts.profiles.get("ann", [""])
    assert [line.text.partition("] ")[2] for line in found[""].lines] == ["I prefer green tea"]


async def test_a_user_who_said_nothing_has_none(parts: Parts) -> None:
    with pytest.raises(NotFound):
        await parts.library.profiles.show("ann")
    await parts.library.add(Scope("ann"), [NewMemory("The heron stood on one leg")])
    with pytest.raises(NotFound):
        await parts.library.profiles.show("ann")


async def test_what_is_stored_is_shown_at_once_with_its_evidence(parts: Parts) -> None:
    said = (Evidence("I am vegan", "t1"),)
    async with parts.ledger.write("ann") as held:
        held.touch(["m1"])
        await parts.put(Memory("m1", "ann", "I am vegan", NOW, NOW, NOW, attribute="diet", evidence=said))
    shown = await parts.library.profiles.show("ann")
    assert shown.evidence == {"m1": said}
    assert shown.text.splitlines()[2:-1] == ["- [2025-06] I am vegan"]
    assert shown.profile.version == 1


async def test_each_change_of_a_memory_is_seen(parts: Parts) -> None:
    (memory_id,) = await parts.library.add(Scope("ann"), [TEA])
    assert await lines(parts) == ["I prefer green tea"]
    await parts.library.patch("ann", memory_id, MemoryEdit(content="I prefer black tea"))
    assert await lines(parts) == ["I prefer black tea"]
    await parts.library.delete("ann", memory_id)
    assert await lines(parts) == []


async def test_a_forgotten_memory_is_gone_before_anything_is_built_again(parts: Parts) -> None:
    (memory_id,) = await parts.library.add(Scope("ann"), [TEA])
    await lines(parts)
    await parts.library.delete("ann", memory_id)
    assert (await parts.profiles.get("ann", [""]))[""].lines == ()


async def test_each_project_has_its_own_and_an_agent_s_memories_are_in_none(parts: Parts) -> None:
    await parts.library.add(Scope("ann"), [TEA, NewMemory("I prefer dark mode", category="preference", agent_id="a")])
    await parts.library.add(Scope("ann", "atlas"), [NewMemory("I prefer tabs", category="preference")])
    assert await lines(parts) == ["I prefer green tea"]
    assert await lines(parts, "atlas") == ["I prefer tabs"]


async def test_pinned_lines_come_first_and_outlast_what_is_learnt(parts: Parts) -> None:
    pinned = await parts.library.profiles.set_own("ann", pinned=["Answer in German"])
    assert pinned.text.splitlines()[2:-1] == ["- Answer in German"]
    await parts.library.add(Scope("ann"), [TEA])
    shown = await parts.library.profiles.show("ann")
    assert shown.text.splitlines()[2:-1] == ["- Answer in German", "- [2025-06] I prefer green tea"]
    assert shown.profile.version == 2


@pytest.mark.parametrize("pinned", [[""], ["a\nb"], ["very " * 50], ["line"] * 11, ["long long long long long"] * 20])
async def test_pinned_lines_have_limits(parts: Parts, pinned: list[str]) -> None:
    with pytest.raises(BadInput):
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
    assert await parts.notes.find("ann", ["k"])  # an addition takes nothing back
    await parts.library.profiles.set_own("ann", **taken_back)  # type: ignore[arg-type]
    assert not await parts.notes.find("ann", ["k"])
    assert await parts.notes.find("bob", ["k"])


async def test_deleting_takes_pinned_lines_too_also_from_conversations_and_learning_builds_it_again(
    parts: Parts,
) -> None:
    await parts.library.add(Scope("ann"), [TEA])
    await parts.library.profiles.set_own("ann", pinned=["Answer in German"])
    await parts.notes.keep("ann", "k", PastNote("<profile>…", (), 5), made_at=NOW - 1)
    await parts.library.profiles.delete("ann")
    assert not await parts.notes.find("ann", ["k"])
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
    await parts.library.delete_scope("ann", "atlas")
    assert set(await parts.profiles.get("ann", ["", "atlas"])) == {""}
    await parts.library.delete_scope("ann")
    assert await parts.profiles.get("ann", ["", "atlas"]) == {}
    await refresher(parts).refresh()
    assert await parts.profiles.get("ann", ["", "atlas"]) == {}
    assert set(await parts.profiles.get("bob", ["", "atlas"])) == {"", "atlas"}


async def test_what_a_profile_holds_stays_when_many_newer_memories_follow(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles_of_service, "MEMORIES_MAX", 5)
    monkeypatch.setattr(profiles_of_service, "PAGE_MEMORIES", 5)
    await parts.library.add(Scope("ann"), [TEA])
    assert await lines(parts) == ["I prefer green tea"]
    parts.now += 10
    await parts.library.add(Scope("ann"), [NewMemory(f"heron {n}") for n in range(12)])
    assert await lines(parts) == ["I prefer green tea"]


# In the background


async def test_the_worker_builds_what_others_changed_and_rests_between_two_builds(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics(CollectorRegistry())
    background = refresher(parts, metrics)
    assert await background.refresh() == 0
    await parts.library.add(Scope("ann"), [TEA])
    assert await background.refresh() == 1
    assert (await parts.profiles.get("ann", [""]))[""].lines
    await parts.library.add(Scope("ann"), [NewMemory("I prefer tabs", category="preference")])
    assert await background.refresh() == 0
    monkeypatch.setattr(profile_refresher, "REST_SECONDS", 0.0)
    assert await background.refresh() == 1
    assert metrics.registry.get_sample_value("memproxy_profiles_total", {"outcome": "built"}) == 2


async def test_an_outage_of_the_store_is_waited_out(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_refresher, "REST_SECONDS", 0.0)
    background, page = refresher(parts), parts.store.page

    async def down(*_: object, **__: object) -> None:
        raise Unavailable("milvus", "it is down")

    await parts.library.add(Scope("ann"), [TEA])
    monkeypatch.setattr(parts.store, "page", down)
    assert await background.refresh() == 0
    monkeypatch.setattr(parts.store, "page", page)
    assert await background.refresh() == 1


async def test_what_was_read_before_somebody_forgot_it_is_not_put(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (memory_id,) = await parts.library.add(Scope("ann"), [TEA])
    bank = MemoryBank(parts.store, parts.ledger, parts.embedder)
    builder = ProfileBuilder(memories=bank, profiles=parts.profiles, clock=lambda: NOW, tokens=WordPieceTokens())
    page = parts.store.page

    async def forgotten_after(*args: object, **kwargs: object) -> object:
        found = await page(*args, **kwargs)  # type: ignore[arg-type]
        monkeypatch.setattr(parts.store, "page", page)
        await parts.library.delete("ann", memory_id)
        return found

    monkeypatch.setattr(parts.store, "page", forgotten_after)
    assert not await builder.build("ann")
    assert await parts.profiles.get("ann", [""]) == {}
