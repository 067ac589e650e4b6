"""What a memory says of turns: when a branch of a conversation is abandoned and resumed, and after an import."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import memory_rows
import pytest
from claims import turn
from hypothesis import given
from hypothesis import strategies as st
from turn_logs import ManualClock

from memory.errors import BadInput
from memory.model import BranchShift, BranchTurn, Evidence, Memory, MemoryStatus, Trust
from memory.model.raw_words import raw_row_ids, rows_of
from memory.model.turns import copied_turn_id
from memory.model.withdrawn import Withdrawn, restored, with_withdrawn, withdrawn_of
from memory.service.branch_evidence import shifted
from memory.service.erasure import without_sources
from memory.service.imported_ids import turn_ids, with_turns
from memory.service.turn_changes import BACK_OFF_SECONDS, FORGOTTEN_SECONDS, UserBackOff

NOW = 1_750_000_000.0
ACTIVE, SUPERSEDED, ARCHIVED = MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED, MemoryStatus.ARCHIVED


def memory(memory_id: str, *turns: str, content: str = "", at: float = 0.0, **fields: Any) -> Memory:
    text = content or f"I like {memory_id}"
    given = {"evidence": tuple(Evidence(text, turn) for turn in turns), "confidence": 0.8, "said_at": NOW + at} | fields
    return memory_rows.memory(memory_id, text, at=NOW, **given)


def superseded(row: Memory, by: Memory) -> Memory:
    replaced: dict[str, Any] = {"superseded_by": by.id, "superseded_at": NOW, "invalid_at": by.said_at}
    return replace(row, status=SUPERSEDED, metadata={"superseded_field": "home"}, **replaced)


def turns(*ids: str) -> tuple[BranchTurn, ...]:
    return tuple(BranchTurn(turn_id, "", NOW) for turn_id in ids)


def after(
    rows: Sequence[Memory], *, abandoned: Sequence[str] = (), resumed: Sequence[str] = (), later: float = 10.0
) -> dict[str, Memory]:
    """All rows after this shift, by id."""
    changed = shifted(rows, BranchShift(turns(*abandoned), turns(*resumed)), now=NOW + later)
    return {row.id: row for row in (*rows, *changed)}


def plain(row: Memory) -> Memory:
    """Without what every change of a row moves."""
    return replace(row, updated_at=NOW, superseded_at=None, confidence=round(row.confidence, 6))


def test_what_rests_on_an_abandoned_turn_alone_is_archived_with_the_reason_and_comes_back() -> None:
    tea, milk = memory("tea", "t1"), memory("milk", "t0")
    thought = memory("both", trust=Trust.TOOL, memory_type="reflective", metadata={"reflects": ["tea", "milk"]})
    gone = after([tea, milk, thought], abandoned=["t1"])
    assert (gone["tea"].status, gone["tea"].evidence) == (ARCHIVED, tea.evidence)
    assert gone["tea"].metadata["archived"] == {"why": "branch", "at": NOW + 10}
    assert (gone["both"].status, gone["milk"].status) == (ARCHIVED, ACTIVE), "a reflection follows its grounds"
    back = after(list(gone.values()), resumed=["t1"])
    assert [plain(back[one.id]) for one in (tea, milk, thought)] == [plain(one) for one in (tea, milk, thought)]


def test_what_an_abandoned_statement_replaced_is_valid_again_until_it_returns() -> None:
    berlin = memory("berlin", "t0")
    paris = memory("paris", "t1", at=1)
    rows = after([superseded(berlin, paris), paris], abandoned=["t1"])
    assert plain(rows["berlin"]) == plain(berlin)
    assert rows["paris"].status is ARCHIVED
    back = after(list(rows.values()), resumed=["t1"])
    assert (back["paris"].status, back["berlin"].status) == (ACTIVE, SUPERSEDED)
    assert (back["berlin"].superseded_by, back["berlin"].invalid_at) == ("paris", paris.said_at)


def test_what_was_said_since_on_the_new_branch_replaces_instead() -> None:
    berlin, paris, rome = memory("berlin", "t0"), memory("paris", "t1", at=1), memory("rome", "t2", at=2)
    rows = after([superseded(berlin, paris), superseded(paris, rome), rome], abandoned=["t1"])
    assert (rows["berlin"].status, rows["berlin"].superseded_by) == (SUPERSEDED, "rome")
    back = after(list(rows.values()), resumed=["t1"])
    assert [back[one].superseded_by for one in ("berlin", "paris", "rome")] == ["paris", "rome", ""]
    assert back["rome"].status is ACTIVE


def test_a_question_that_an_abandoned_yes_confirmed_is_withdrawn() -> None:
    asked = "Do you like tea?"
    row = memory("tea", content=f"{asked} Yes", at=5, evidence=(Evidence(asked, "t0", "assistant"),))
    other = replace(row, id="other", said_at=NOW + 6)
    shift = BranchShift((BranchTurn("t1", "t0", NOW + 5),))
    (changed,) = shifted([row, other], shift, now=NOW + 10)
    assert (changed.id, changed.status) == ("tea", ARCHIVED)


def test_a_statement_that_is_stored_again_meanwhile_gets_the_evidence_back() -> None:
    gone = after([memory("tea", "t1")], abandoned=["t1"])["tea"]
    new = memory("new", "t2", content="i like tea!")
    rows = after([gone, new], resumed=["t1"])
    assert [quoted.turn_id for quoted in rows["new"].evidence] == ["t2", "t1"]
    assert rows["tea"].status is ARCHIVED


def test_what_upkeep_or_the_user_decided_stands() -> None:
    unused = memory("tea", "t1", status=ARCHIVED, metadata={"archived": {"why": "unused"}})
    assert shifted([unused], BranchShift(turns("t1")), now=NOW) == []
    assert shifted([unused], BranchShift((), turns("t1")), now=NOW) == []
    kept = restored(after([memory("milk", "t1")], abandoned=["t1"])["milk"], now=NOW)
    assert shifted([kept], BranchShift((), turns("t1")), now=NOW) == []


def test_what_was_superseded_before_its_branch_was_abandoned_is_not_restored_by_hand() -> None:
    new = memory("new", "t2", at=2)
    old = superseded(memory("old", "t1"), by=new)
    left = after([old, new], abandoned=["t1"])
    with pytest.raises(BadInput, match="superseded"):
        restored(left["old"], now=NOW)
    assert plain(after(list(left.values()), resumed=["t1"])["old"]) == plain(old)


@pytest.mark.parametrize("kept", [5, [], {"evidence": 5}, {"evidence": [1, ["a"]]}, {"turns": "t1"}])
def test_metadata_of_an_application_is_never_taken_for_ours(kept: Any) -> None:
    row = memory("tea", metadata={"withdrawn": kept, "archived": {"why": "branch"}}, trust=Trust.BOOTSTRAPPED)
    assert shifted([row, replace(row, id="x", trust=Trust.INFERRED)], BranchShift((), turns("t1")), now=NOW) == []


def test_forgetting_a_turn_reaches_what_was_withdrawn() -> None:
    left = after([memory("tea", "t0", "t1")], abandoned=["t1"])["tea"]
    forgotten = without_sources(left, ["t1"], now=NOW)
    assert "withdrawn" not in forgotten.metadata
    assert [quoted.turn_id for quoted in forgotten.evidence] == ["t0"]
    archived = after([memory("tea", "t1")], abandoned=["t1"])["tea"]
    assert without_sources(archived, ["t1"], now=NOW) is None


@given(
    owners=st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=5),
    shifts=st.lists(st.sets(st.integers(0, 4)), max_size=6),
)
def test_after_any_shifts_a_memory_is_valid_if_one_of_its_turns_holds(owners: Any, shifts: Any) -> None:
    def named(numbers: set[int]) -> tuple[BranchTurn, ...]:
        return turns(*(f"t{n}" for n in numbers))

    first = [memory(f"m{n}", *(f"t{turn}" for turn in sorted(of))) for n, of in enumerate(owners)]
    rows = {row.id: row for row in first}
    was: set[int] = set()
    for abandoned in shifts:
        shift = BranchShift(named(abandoned - was), named(was - abandoned))
        rows |= {row.id: row for row in shifted(rows.values(), shift, now=NOW + 10)}
        assert shifted(rows.values(), shift, now=NOW + 20) == []  # once is enough
        was = abandoned
        for number, of in enumerate(owners):
            row = rows[f"m{number}"]
            assert row.status is (ACTIVE if of - was else ARCHIVED)
            if row.status is ACTIVE:
                assert {quoted.turn_id for quoted in row.evidence} == {f"t{n}" for n in of - was}
    rows |= {row.id: row for row in shifted(rows.values(), BranchShift((), named(was)), now=NOW + 10)}
    for row in first:
        assert set(rows[row.id].evidence) == set(row.evidence)
        assert rows[row.id].confidence == pytest.approx(row.confidence)


def quote(turn_id: str) -> Evidence:
    return Evidence("my door is red", turn_id, "user")


def test_all_turns_of_a_memory_are_called_as_they_are_here() -> None:
    memory = Memory("m", "ann", "Has a red door", NOW, NOW, NOW, evidence=(quote("t1"), quote("own"), quote("")))
    memory = with_withdrawn(memory, Withdrawn((quote("t2"),), status="active", turns=("t3", "own")))
    assert turn_ids(memory) == {"t1", "t2", "t3", "own"}
    here = with_turns("ann", memory, own={"own"})
    t1, t2, t3 = (copied_turn_id("ann", one) for one in ("t1", "t2", "t3"))
    assert [one.turn_id for one in here.evidence] == [t1, "own", ""]
    assert withdrawn_of(here).evidence == (quote(t2),)
    assert withdrawn_of(here).turns == (t3, "own")
    assert replace(here, evidence=(), metadata={}) == replace(memory, evidence=(), metadata={})


def test_a_row_of_raw_words_is_found_by_its_turn_under_its_id_here() -> None:
    said = turn("My door is red")
    rows = rows_of(said, ["My door is red", "My cat is old"])
    user = said.scope.user_id
    here = [with_turns(user, row, own=()) for row in rows]
    assert [row.id for row in here] == raw_row_ids(user, copied_turn_id(user, said.id))[:2]
    assert [with_turns(user, row, own={said.id}) for row in rows] == rows


async def test_pauses_grow_until_it_succeeds_and_whose_work_others_did_is_dropped() -> None:
    clock, left = ManualClock(), ["ann"]
    back_off = UserBackOff(clock)

    async def next_user(*, without: Collection[str]) -> str | None:
        return next((one for one in left if one not in without), None)

    async def done(user_id: str) -> None:
        left.remove(user_id)

    for waiting in (set(), {"ann"}, {"ann"}):
        back_off.begin("ann")
        assert back_off.waiting() == {"ann"}
        clock.now += BACK_OFF_SECONDS
        assert back_off.waiting() == waiting
    await back_off.work_off(next_user, done)
    assert left == ["ann"]
    clock.now += 4 * BACK_OFF_SECONDS
    await back_off.work_off(next_user, done)
    assert left == []
    for passed in (BACK_OFF_SECONDS, FORGOTTEN_SECONDS + 60, BACK_OFF_SECONDS):
        back_off.begin("ann")
        clock.now += passed
        assert back_off.waiting() == set(), "its pauses begin again"
