"""Profiles: what is put comes back until memories change, and what is forgotten goes. On every adapter."""

from __future__ import annotations

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


async def own(process: Process, user_id: str = "ann") -> Profile | None:
    return (await process.profiles.get(user_id, [""])).get("")


async def test_what_is_put_comes_back_in_every_process_with_a_version(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        assert await own(two) is None
        assert await one.profiles.put("ann", {"": [LEEDS], "atlas": [VEGAN]}, revision=await written(one), now=START)
        assert await own(two) == Profile("ann", "", 1, (), (LEEDS,), updated_at=START)
        assert (await two.profiles.get("ann", ["atlas"]))["atlas"].lines == (VEGAN,)
        assert await two.profiles.get("bob", ["", "atlas"]) == {}
        assert await one.profiles.put("ann", {"": [LEEDS]}, revision=await written(one), now=START)
        assert (await two.profiles.get("ann", ["atlas"]))["atlas"].lines == ()  # nothing is left of it


async def test_all_profiles_of_a_user_are_found_whoever_made_them(process: Process) -> None:
    assert await process.profiles.all("ann") == []
    await process.profiles.put("ann", {"": [LEEDS], "atlas": [VEGAN]}, revision=await written(process), now=START)
    await process.profiles.set_own("ann", "zoo", pinned=[BRIEF], is_enabled=False, now=START)
    await process.profiles.set_own("bob", "", pinned=[BRIEF], now=START)
    found = await process.profiles.all("ann")
    assert [(one.user_id, one.project_id, one.pinned, one.is_enabled) for one in found] == [
        ("ann", "", (), True),
        ("ann", "atlas", (), True),
        ("ann", "zoo", (BRIEF,), False),
    ]
    assert {one.project_id: one for one in found} == await process.profiles.get("ann", ["", "atlas", "zoo"])


async def test_the_version_grows_only_when_the_lines_change(process: Process) -> None:
    for lines, version in (((LEEDS,), 1), ((LEEDS,), 1), ((LEEDS, VEGAN), 2), ((), 3), ((LEEDS,), 4)):
        assert await process.profiles.put("ann", {"": lines}, revision=await written(process), now=START)
        found = await own(process)
        assert found is not None
        assert (found.lines, found.version) == (lines, version)


async def test_a_lock_under_which_nothing_was_touched_makes_nobody_stale(process: Process) -> None:
    await process.profiles.put("ann", {"": [LEEDS]}, revision=await written(process), now=START)
    async with process.ledger.write("ann"):
        pass
    assert not await process.profiles.is_stale("ann")
    assert await process.profiles.stale(limit=9) == []
    await written(process)
    assert await process.profiles.stale(limit=9) == ["ann"]


async def test_lines_built_before_or_while_somebody_writes_are_refused(process: Process) -> None:
    before = await written(process)
    await written(process)
    assert not await process.profiles.put("ann", {"": [LEEDS]}, revision=before, now=START)
    assert await own(process) is None
    assert await process.profiles.is_stale("ann")
    before = await written(process)
    async with process.ledger.write("ann"):
        assert not await process.profiles.put("ann", {"": [LEEDS]}, revision=before, now=START)


async def test_every_write_makes_its_user_stale_until_the_lines_are_put(deployment: Deployment) -> None:
    async with deployment.start() as one, deployment.start() as two:
        assert await one.profiles.stale(limit=10) == []
        revision = await written(one)
        await written(one, "bob")
        await written(one, " project/k1")  # has none
        assert await two.profiles.stale(limit=10) == ["ann", "bob"]
        assert not await two.profiles.is_stale(" project/k1")
        assert await two.profiles.stale(limit=1) == ["ann"]
        assert await two.profiles.put("ann", {}, revision=revision, now=START)
        assert await one.profiles.stale(limit=10) == ["bob"]
        assert not await one.profiles.is_stale("ann")
        assert await one.profiles.is_stale("bob")
    async with deployment.start() as later:  # whoever died in between
        assert await later.profiles.stale(limit=10) == ["bob"]


async def test_pinned_lines_and_the_switch_outlast_new_lines(process: Process) -> None:
    await process.profiles.set_own("ann", "", pinned=[BRIEF], now=START)
    await process.profiles.put("ann", {"": [LEEDS]}, revision=await written(process), now=START)
    await process.profiles.set_own("ann", "", is_enabled=False, now=START + 1)
    assert await own(process) == Profile("ann", "", 2, (BRIEF,), (LEEDS,), False, START + 1)
    await process.profiles.set_own("ann", "", pinned=[], now=START + 2)
    assert await own(process) == Profile("ann", "", 3, (), (LEEDS,), False, START + 2)


async def test_a_forgotten_memory_leaves_every_profile_of_its_user(process: Process) -> None:
    await process.profiles.put(
        "ann", {"": [LEEDS, VEGAN], "atlas": [LEEDS]}, revision=await written(process), now=START
    )
    await process.profiles.put("bob", {"": [LEEDS]}, revision=await written(process, "bob"), now=START)
    await process.profiles.drop("ann", ["m1", "m9"], now=START + 1)
    found = await process.profiles.get("ann", ["", "atlas"])
    assert (found[""].lines, found[""].version) == ((VEGAN,), 2)
    assert found["atlas"].lines == ()
    assert (await process.profiles.get("bob", [""]))[""].lines == (LEEDS,)


async def test_erasing_takes_one_project_or_everything_of_one_user(process: Process) -> None:
    for user_id in ("ann", "bob"):
        await process.profiles.put(
            user_id, {"": [LEEDS], "atlas": [VEGAN]}, revision=await written(process, user_id), now=START
        )
        await process.profiles.set_own(user_id, "atlas", pinned=[BRIEF], now=START)
    await process.profiles.erase("ann", "atlas")
    assert set(await process.profiles.get("ann", ["", "atlas"])) == {""}
    await process.profiles.erase("ann")
    assert await process.profiles.get("ann", ["", "atlas"]) == {}
    assert set(await process.profiles.get("bob", ["", "atlas"])) == {"", "atlas"}


async def test_a_line_is_not_shown_once_its_memory_was_written_until_the_lines_are_put_again(
    deployment: Deployment,
) -> None:
    async with deployment.start() as one, deployment.start() as two:
        await one.profiles.put("ann", {"": [LEEDS, VEGAN]}, revision=await written(one), now=START)
        revision = await written(two)  # touches m1
        found = await own(one)
        assert found is not None
        assert found.lines == (VEGAN,)
        assert (await one.profiles.all("ann"))[0].lines == (LEEDS, VEGAN)  # for who builds them
        await two.profiles.put("ann", {"": [LEEDS, VEGAN]}, revision=revision, now=START)
        assert await own(one) == Profile("ann", "", 1, (), (LEEDS, VEGAN), updated_at=START)
