"""One row per statement, nothing destroyed, the same outcome at every attempt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.learn.changes.supersession import Verdict
from memory.learn.consolidation import EVIDENCE_MAX, consolidate
from memory.learn.facts import Fact
from memory.learn.plan import Plan, UnreadablePlan, decode, encode
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, Scope, Trust

NOW = 1_750_000_000.0


def fact(content: str, *, turn: str = "t1", said_at: float = NOW, project: str = "", role: str = "user") -> Fact:
    return Fact(
        content=content,
        evidence=Evidence(content, turn, role),
        scope=Scope("ann", project_id=project, session_id="s"),
        said_at=said_at,
    )


def ids(ordinal: str) -> str:
    return f"id-{ordinal}"


def stored(content: str, *, said_at: float = NOW - 1_000, project: str = "") -> Memory:
    (change,) = consolidate(
        [fact(content, turn=f"turn of {content}", said_at=said_at, project=project)],
        [],
        now=said_at,
        ids=lambda ordinal: f"{content}/{ordinal}",
    )
    return change.memory


def kinds(changes: list[Change]) -> list[tuple[ChangeKind, str]]:
    return [(change.kind, change.memory.content) for change in changes]


def test_a_new_statement_creates_a_row_with_its_evidence_and_its_time() -> None:
    (change,) = consolidate([fact("I live in Leeds", said_at=NOW - 5)], [], now=NOW, ids=ids)
    row = change.memory
    assert (change.kind, row.id, row.content) == (ChangeKind.CREATE, "id-0", "I live in Leeds")
    assert (row.created_at, row.said_at, row.valid_from) == (NOW, NOW - 5, NOW - 5)
    assert row.evidence == (Evidence("I live in Leeds", "t1"),)


def test_the_same_statement_updates_the_row_that_says_it() -> None:
    before = stored("I live in Leeds")
    (change,) = consolidate([fact("i live in  LEEDS!")], [before], now=NOW, ids=ids)
    assert (change.kind, change.memory.id, change.memory.content) == (ChangeKind.UPDATE, before.id, before.content)
    assert (change.memory.updated_at, change.memory.said_at, change.memory.created_at) == (NOW, NOW, before.created_at)
    assert before.confidence < change.memory.confidence < 1.0
    assert len(change.memory.evidence) == 2


def test_a_statement_said_twice_in_one_window_is_one_row() -> None:
    (change,) = consolidate([fact("I live in Leeds"), fact("I live in Leeds.", turn="t2")], [], now=NOW, ids=ids)
    assert change.kind is ChangeKind.CREATE
    assert [e.turn_id for e in change.memory.evidence] == ["t1", "t2"]


def test_evidence_is_bounded_and_keeps_the_first() -> None:
    row = stored("I live in Leeds")
    first = row.evidence[0]
    for number in range(20):
        (change,) = consolidate([fact("I live in Leeds", turn=f"t{number}")], [row], now=NOW, ids=ids)
        row = change.memory
    assert len(row.evidence) == EVIDENCE_MAX
    assert row.evidence[0] == first
    assert row.evidence[-1].turn_id == "t19"


def test_the_same_statement_of_another_project_is_another_row() -> None:
    changes = consolidate([fact("I live in Leeds", project="p")], [stored("I live in Leeds")], now=NOW, ids=ids)
    assert kinds(changes) == [(ChangeKind.CREATE, "I live in Leeds")]


def test_what_is_changed_is_superseded_and_stays_with_its_history() -> None:
    before = stored("I live in Leeds")
    changes = consolidate([fact("I moved to York")], [before], now=NOW, ids=ids)
    assert kinds(changes) == [(ChangeKind.CREATE, "I moved to York"), (ChangeKind.SUPERSEDE, "I live in Leeds")]
    old = changes[1].memory
    assert old.status is MemoryStatus.SUPERSEDED
    assert (old.superseded_by, old.superseded_at, old.invalid_at) == ("id-0", NOW, NOW)
    assert old.evidence == before.evidence


def test_what_the_superseded_row_said_besides_gets_a_row_of_its_own() -> None:
    before = stored("I live in Leeds, my sister lives in Oslo")
    changes = consolidate([fact("I moved to York")], [before], now=NOW, ids=ids)
    rest = changes[2]
    assert (rest.kind, rest.memory.content) == (ChangeKind.CREATE, "my sister lives in Oslo")
    assert (rest.memory.evidence, rest.memory.said_at) == (before.evidence, before.said_at)
    assert rest.memory.id not in (before.id, "id-0")


def test_what_arrives_late_does_not_replace_what_was_said_after_it() -> None:
    newer = stored("I moved to York", said_at=NOW - 10)
    changes = consolidate([fact("I live in Leeds", said_at=NOW - 5_000)], [newer], now=NOW, ids=ids)
    (change,) = changes
    assert (change.kind, change.memory.status) == (ChangeKind.CREATE, MemoryStatus.SUPERSEDED)
    assert change.memory.superseded_by == newer.id


def test_statements_of_one_breath_hold_together_unless_one_corrects_the_other() -> None:
    together = consolidate([fact("I live in Leeds"), fact("I moved to York")], [], now=NOW, ids=ids)
    corrected = consolidate([fact("I live in Leeds"), fact("Sorry, I live in York")], [], now=NOW, ids=ids)
    assert {c.memory.status for c in together} == {MemoryStatus.ACTIVE}
    assert [c.memory.status for c in corrected] == [MemoryStatus.SUPERSEDED, MemoryStatus.ACTIVE]


def test_a_superseded_row_is_left_alone() -> None:
    gone = replace(stored("I live in Leeds"), status=MemoryStatus.SUPERSEDED)
    assert kinds(consolidate([fact("I live in Leeds")], [gone], now=NOW, ids=ids)) == [
        (ChangeKind.CREATE, "I live in Leeds")
    ]


def test_the_assistants_question_adds_nothing_to_what_is_known() -> None:
    known = stored("My budget for the Hawaii trip is $10,000")
    asked = fact("Is your budget for the Hawaii trip $10,000?", role="assistant")
    assert consolidate([asked], [known], now=NOW, ids=ids) == []


def test_two_attempts_plan_the_same() -> None:
    facts = [fact("I live in Leeds"), fact("I moved to York", turn="t2"), fact("My cat is Tom", turn="t3")]
    rows = [stored("I live in Bath, my dog is Rex")]
    assert consolidate(facts, rows, now=NOW, ids=ids) == consolidate(facts, rows, now=NOW, ids=ids)


def test_a_plan_comes_back_as_it_was_stored() -> None:
    odd = replace(stored("I live in \ud800 Leeds 你好"), metadata={"a": [1, None, "x"]}, invalid_at=None)
    changes = [
        Change(ChangeKind.CREATE, odd),
        *consolidate([fact("I moved to York")], [stored("I live in Leeds")], now=NOW, ids=ids),
    ]
    whole = Plan(changes, ("m9",), {"r1": {"forgot": ["m9"], "count": 1}})
    assert decode(encode(whole)) == whole


def test_a_plan_that_is_not_ours_is_refused() -> None:
    for broken in (b"", b"[]", b"{}", b'{"version": 1, "changes": []}', b'{"version": 3, "changes": [{}]}', b"\xff"):
        try:
            decode(broken)
        except UnreadablePlan:
            continue
        raise AssertionError(broken)


@pytest.mark.parametrize("trust", [Trust.BOOTSTRAPPED, Trust.EXPLICIT])
def test_what_is_said_in_passing_moves_what_was_given_or_asked_for_only_by_words_of_change(trust: Trust) -> None:
    given = replace(stored("My budget is 500 euros"), trust=trust)
    passing = consolidate([fact("My budget is 900 euros")], [given], now=NOW, ids=ids)
    assert kinds(passing) == [(ChangeKind.CREATE, "My budget is 900 euros")]
    changed = consolidate([fact("My budget is now 900 euros")], [given], now=NOW, ids=ids)
    assert (ChangeKind.SUPERSEDE, "My budget is 500 euros") in kinds(changed)


def test_what_was_derived_never_moves_what_was_said() -> None:
    derived = replace(fact("My budget is now 900 euros"), trust=Trust.TOOL)
    changes = consolidate([derived], [stored("My budget is 500 euros")], now=NOW, ids=ids)
    assert kinds(changes) == [(ChangeKind.CREATE, "My budget is now 900 euros")]


def test_what_was_asked_for_moves_what_was_said_in_passing() -> None:
    asked = replace(fact("My budget is 900 euros"), is_explicit=True)
    changes = consolidate([asked], [stored("My budget is 500 euros")], now=NOW, ids=ids)
    assert (ChangeKind.SUPERSEDE, "My budget is 500 euros") in kinds(changes)


def test_the_words_of_a_correction_make_one_and_say_what_to_avoid() -> None:
    wrong = stored("My budget is 500 euros")
    changes = consolidate([fact("Sorry, I meant my budget is 900 euros")], [wrong], now=NOW, ids=ids)
    row = changes[0].memory
    assert (row.category, row.trust, row.metadata) == ("correction", Trust.EXPLICIT, {"avoid": wrong.content})
    assert (ChangeKind.SUPERSEDE, wrong.content) in kinds(changes)


def test_what_somebody_who_was_asked_says_counts_unless_trust_keeps_it_apart() -> None:
    old = stored("I train at Fitline")
    new = fact("My gym is on Mill Street")
    assert len(consolidate([new], [old], now=NOW, ids=ids)) == 1
    ruled = {(0, old.id): Verdict()}
    assert (ChangeKind.SUPERSEDE, old.content) in kinds(consolidate([new], [old], now=NOW, ids=ids, changed=ruled))
    explicit = replace(old, trust=Trust.EXPLICIT)
    assert len(consolidate([new], [explicit], now=NOW, ids=ids, changed=ruled)) == 1
