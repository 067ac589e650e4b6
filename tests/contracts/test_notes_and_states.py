"""Notes and states of conversations are found by their keys, by their own user alone, until they are dropped."""

from __future__ import annotations

import pytest
from note_lookup import notes_of
from turn_logs import START, Deployment, Process

from memory.adapters.sql import notes as sql_states
from memory.adapters.sql.notes import NoteLimits
from memory.model import CompactedState, HistorySegment, PastNote, StateItem, StateItemKind
from memory.ports import CompactedStates, NoteBook

NOTE = PastNote('<memory>\n- 2025-01-02: I\'m "Ann" 你好 \\ é\n</memory>', ("m1", "it's 你"), 21)


def note(*memory_ids: str, text: str = "") -> PastNote:
    return PastNote(text or f"about {', '.join(memory_ids)}", memory_ids, 7)


@pytest.fixture
def book(process: Process) -> NoteBook:
    return process.notes


@pytest.fixture
def states(process: Process) -> CompactedStates:
    return process.states


async def test_a_note_comes_back_in_every_process(deployment: Deployment, book: NoteBook, other: Process) -> None:
    await book.keep("ann", "k1", NOTE, made_at=START)
    assert await notes_of(other.notes, "ann", ["k0", "k1", "k2"]) == {"k1": NOTE}
    assert await notes_of(other.notes, "ann", []) == await notes_of(other.notes, "bob", ["k1"]) == {}
    await book.keep("bob", "k1", note("b"), made_at=START)
    await book.keep("ann", "k2", note("a"), made_at=START)
    await other.notes.drop("ann", ["a"], now=START + 1)
    assert await notes_of(book, "ann", ["k1", "k2"]) == {"k1": NOTE}
    async with deployment.start() as later:
        assert await notes_of(later.notes, "ann", ["k1"]) == {"k1": NOTE}
        await later.notes.keep("ann", "k1", NOTE, made_at=START + 2.25)  # when the search for it began
        assert (await notes_of(later.notes, "ann", ["k1"]))["k1"].made_at == START + 2.25


async def test_every_note_that_holds_a_dropped_memory_is_gone_and_no_other(book: NoteBook) -> None:
    for key, one in {"k1": note("a", "b"), "k2": note("b"), "k3": note("it's 你"), "k4": note("aa")}.items():
        await book.keep("ann", key, one, made_at=START)
    await book.keep("bob", "k1", note("a"), made_at=START)
    await book.drop("ann", ["a", "it's 你", "never was"], now=START + 1)
    assert set(await notes_of(book, "ann", ["k1", "k2", "k3", "k4"])) == {"k2", "k4"}
    await book.drop("ann", [], now=START + 2)  # all of the user
    assert await notes_of(book, "ann", ["k2", "k4"]) == {}
    assert set(await notes_of(book, "bob", ["k1"])) == {"k1"}


@pytest.mark.parametrize("dropped", [["a"], []])
async def test_a_note_that_was_under_way_during_the_drop_is_not_kept(book: NoteBook, dropped: list[str]) -> None:
    await book.drop("ann", dropped, now=START + 1)
    for n in range(50):
        await book.drop("ann", [f"x{n}"], now=START + 2 + n)  # later drops do not lift an earlier one within its minute
    await book.keep("ann", "k1", note("a", "b"), made_at=START + 0.9)
    await book.keep("ann", "k2", note("b"), made_at=START + 0.9)
    await book.keep("ann", "k3", note("a"), made_at=START + 1.1)  # the memory was changed, not forgotten
    assert set(await notes_of(book, "ann", ["k1", "k2", "k3"])) == ({"k2", "k3"} if dropped else {"k3"})
    await book.keep("bob", "k1", note("a"), made_at=START + 0.9)
    assert set(await notes_of(book, "bob", ["k1"])) == {"k1"}


@pytest.mark.parametrize("is_of_user", [True, False])
async def test_the_oldest_notes_go_when_the_bytes_of_a_user_or_of_all_are_spent(
    deployment: Deployment, *, is_of_user: bool
) -> None:
    limits = NoteLimits(user_bytes_max=10_000) if is_of_user else NoteLimits(total_bytes_max=10_000)
    deployment.bounds.notes = limits
    async with deployment.start() as process:
        await process.notes.keep("bob", "k", note("b"), made_at=START)
        users = ["ann" if is_of_user else f"user{n}" for n in range(50)]
        for n, user in enumerate(users):
            await process.notes.keep(user, f"k{n}", note(f"m{n}", text="x" * 1_000), made_at=START + n)
        left = [n for n, user in enumerate(users) if await notes_of(process.notes, user, [f"k{n}"])]
        assert left == list(range(50 - len(left), 50))
        assert 9 <= len(left) <= 10  # a little more than 1,000 bytes each; one may lie across the bound
        assert bool(await notes_of(process.notes, "bob", ["k"])) is is_of_user


async def test_a_replaced_note_counts_as_new_and_one_of_monstrous_size_is_not_kept(deployment: Deployment) -> None:
    deployment.bounds.notes = NoteLimits(user_bytes_max=3_000)
    async with deployment.start() as process:
        for at, number in enumerate((0, 1, 2, 0, 3)):
            await process.notes.keep("ann", f"k{number}", note("m", text="x" * 1_000), made_at=START + at)
        await process.notes.keep("ann", "k4", note("m", text="x" * 100_000), made_at=START + 9)
        assert set(await notes_of(process.notes, "ann", [f"k{n}" for n in range(5)])) == {"k0", "k2", "k3"}


def state(cut: int, text: str = "what was said") -> CompactedState:
    item = StateItem(StateItemKind.DECISION, "We take the blue one.", 0.75)
    return CompactedState(cut, (HistorySegment("colours", (item,)),), text, 12, 300)


async def test_the_newest_state_counts(deployment: Deployment, states: CompactedStates, other: Process) -> None:
    for key, cut in (("k1", 3), ("k7", 9)):
        await states.keep("ann", key, state(cut), made_at=START)
    find = other.states.find
    assert await find("ann", ["k1", "k2"]) == ("k1", state(3))
    assert await find("ann", ["k1", "k7", "k8"]) == ("k7", state(9))
    assert await find("ann", ["k8"]) is await find("ann", []) is await find("bob", ["k1"]) is None
    async with deployment.start() as later:
        assert await later.states.find("ann", [f"k{number}" for number in (1, *range(20, 500))]) == ("k1", state(3))


async def test_the_first_state_of_a_key_stays_until_it_is_dropped(states: CompactedStates) -> None:
    for user in ("ann", "bob"):
        await states.keep(user, "k1", state(3), made_at=START)
    again = state(3, "in other words")
    await states.keep("ann", "k1", again, made_at=START + 1)
    assert await states.find("ann", ["k1"]) == ("k1", state(3))
    await states.drop("ann", now=START + 5)
    assert await states.find("ann", ["k1"]) is None
    assert await states.find("bob", ["k1"]) is not None
    await states.keep("ann", "k1", again, made_at=START + 4)
    assert await states.find("ann", ["k1"]) is None, "its making began before the states were dropped"
    await states.keep("ann", "k1", again, made_at=START + 6)
    assert await states.find("ann", ["k1"]) == ("k1", again)


async def test_states_expire_and_one_that_is_too_large_is_not_kept(states: CompactedStates) -> None:
    await states.keep("ann", "old", state(3), made_at=START)
    await states.keep("bob", "new", state(3), made_at=START + sql_states.STATE_SECONDS_MAX + 1)
    assert await states.find("ann", ["old"]) is None
    await states.keep("ann", "large", state(3, "x" * sql_states.STATE_BYTES_MAX), made_at=START)
    assert await states.find("ann", ["large"]) is None


async def test_the_oldest_states_of_a_user_go_first(states: CompactedStates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_states, "USER_STATES_MAX", 3)
    await states.keep("bob", "b", state(3), made_at=START)
    for number in range(5):
        await states.keep("ann", f"k{number}", state(number), made_at=START + number)
    found = [await states.find("ann", [f"k{number}"]) is not None for number in range(5)]
    assert found == [False, False, True, True, True]
    assert await states.find("bob", ["b"]) is not None
