"""Profiles: what is put comes back until memories change, and what is forgotten goes. On every adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from turn_logs import START, Deployment, Process

from memory.model import Profile, ProfileLine

LEEDS = ProfileLine("- I live in Leeds", 5, "m1")
VEGAN = ProfileLine("- I am vegan", 4, "m2")
BRIEF = ProfileLine("- Answer briefly", 3)


async def written(process: Process, user_id: str = "ann") -> int:
    """The user's revision after a write."""
    async with process.ledger.write(user_id) as held:
        held.touch(["m1"])
    return (await process.ledger.revision(user_id)).number


async def put(process: Process, lines: Mapping[str, Sequence[ProfileLine]], user_id: str = "ann") -> None:
    """Lines by project, after a write."""
    assert await process.profiles.put(user_id, lines, revision=await written(process, user_id), now=START)


async def own(process: Process) -> Profile:
    return (await process.profiles.get("ann", [""]))[""]


async def test_what_is_put_comes_back_until_its_memories_are_written(process: Process, other: Process) -> None:
    assert await other.profiles.get("ann", [""]) == {}
    await put(process, {"": [LEEDS, VEGAN], "atlas": [VEGAN]})
    whole = Profile("ann", "", 1, (), (LEEDS, VEGAN), updated_at=START)
    assert await own(other) == whole
    assert (await other.profiles.get("ann", ["atlas"]))["atlas"].lines == (VEGAN,)
    assert await other.profiles.get("bob", ["", "atlas"]) == {}
    revision = await written(other)  # touches m1
    assert (await own(process)).lines == (VEGAN,)
    assert (await process.profiles.all("ann"))[0].lines == (LEEDS, VEGAN)  # for who builds them
    await other.profiles.put("ann", {"": [LEEDS, VEGAN]}, revision=revision, now=START)
    assert await own(process) == whole
    assert (await process.profiles.get("ann", ["atlas"]))["atlas"].lines == ()  # nothing is left of it


async def test_all_profiles_of_a_user_are_found_whoever_made_them(process: Process) -> None:
    assert await process.profiles.all("ann") == []
    await put(process, {"": [LEEDS], "atlas": [VEGAN]})
    await process.profiles.set_own("ann", "zoo", pinned=[BRIEF], is_enabled=False, now=START)
    await process.profiles.set_own("bob", "", pinned=[BRIEF], now=START)
    found = await process.profiles.all("ann")
    shown = [(one.user_id, one.project_id, one.pinned, one.is_enabled) for one in found]
    assert shown == [("ann", "", (), True), ("ann", "atlas", (), True), ("ann", "zoo", (BRIEF,), False)]
    assert {one.project_id: one for one in found} == await process.profiles.get("ann", ["", "atlas", "zoo"])


async def test_the_version_grows_only_when_the_lines_change(process: Process) -> None:
    for lines, version in (((LEEDS,), 1), ((LEEDS,), 1), ((LEEDS, VEGAN), 2), ((), 3), ((LEEDS,), 4)):
        await put(process, {"": lines})
        assert ((await own(process)).lines, (await own(process)).version) == (lines, version)


async def test_lines_built_before_or_while_somebody_writes_are_refused(process: Process) -> None:
    before = await written(process)
    await written(process)
    assert not await process.profiles.put("ann", {"": [LEEDS]}, revision=before, now=START)
    assert await process.profiles.get("ann", [""]) == {}
    assert await process.profiles.is_stale("ann")
    before = await written(process)
    async with process.ledger.write("ann"):
        assert not await process.profiles.put("ann", {"": [LEEDS]}, revision=before, now=START)


async def test_every_write_makes_its_user_stale(deployment: Deployment, process: Process, other: Process) -> None:
    assert await process.profiles.stale(limit=10) == []
    await written(process)
    await written(process, "bob")
    await written(process, " project/k1")  # has none
    assert await other.profiles.stale(limit=10) == ["ann", "bob"]
    assert not await other.profiles.is_stale(" project/k1")
    assert await other.profiles.stale(limit=1) == ["ann"]
    await put(other, {})
    async with process.ledger.write("ann"):
        pass  # a lock under which nothing was touched makes nobody stale
    assert await process.profiles.stale(limit=10) == ["bob"]
    assert [await process.profiles.is_stale(user) for user in ("ann", "bob")] == [False, True]
    async with deployment.start() as later:  # whoever died in between
        assert await later.profiles.stale(limit=10) == ["bob"]


async def test_pinned_lines_and_the_switch_outlast_new_lines(process: Process) -> None:
    await process.profiles.set_own("ann", "", pinned=[BRIEF], now=START)
    await put(process, {"": [LEEDS]})
    await process.profiles.set_own("ann", "", is_enabled=False, now=START + 1)
    assert await own(process) == Profile("ann", "", 2, (BRIEF,), (LEEDS,), False, START + 1)
    await process.profiles.set_own("ann", "", pinned=[], now=START + 2)
    assert await own(process) == Profile("ann", "", 3, (), (LEEDS,), False, START + 2)


async def test_a_forgotten_memory_leaves_every_profile_of_its_user(process: Process) -> None:
    await put(process, {"": [LEEDS, VEGAN], "atlas": [LEEDS]})
    await put(process, {"": [LEEDS]}, "bob")
    await process.profiles.drop("ann", ["m1", "m9"], now=START + 1)
    found = await process.profiles.get("ann", ["", "atlas"])
    assert (found[""].lines, found[""].version) == ((VEGAN,), 2)
    assert found["atlas"].lines == ()
    assert (await process.profiles.get("bob", [""]))[""].lines == (LEEDS,)


async def test_erasing_takes_one_project_or_everything_of_one_user(process: Process) -> None:
    for user_id in ("ann", "bob"):
        await put(process, {"": [LEEDS], "atlas": [VEGAN]}, user_id)
        await process.profiles.set_own(user_id, "atlas", pinned=[BRIEF], now=START)
    await process.profiles.erase("ann", "atlas")
    assert set(await process.profiles.get("ann", ["", "atlas"])) == {""}
    await process.profiles.erase("ann")
    assert await process.profiles.get("ann", ["", "atlas"]) == {}
    assert set(await process.profiles.get("bob", ["", "atlas"])) == {"", "atlas"}
