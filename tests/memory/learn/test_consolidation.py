"""One row per statement, nothing destroyed, the same outcome at every attempt; fields decide, never likeness."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from claims import NOW, claim

from memory.learn.consolidation import EVIDENCE_MAX, Judged, consolidate
from memory.learn.feedback import Confirmation
from memory.learn.plan import Plan, UnreadablePlan, decode, encode
from memory.model import Act, Change, ChangeKind, Evidence, Memory, MemoryStatus, Relation, Scope, Trust
from memory.ports import PairRelation, PairVerdict


def ids(ordinal: str) -> str:
    return f"id-{ordinal}"


def stored(content: str, *, said_at: float = NOW - 1_000, **fields: Any) -> Memory:
    (change,) = consolidate(
        [claim(content, turn=f"turn of {content}", said_at=said_at, **fields)],
        [],
        now=said_at,
        ids=lambda ordinal: f"{content}/{ordinal}",
    )
    return change.memory


def kinds(changes: list[Change]) -> list[tuple[ChangeKind, str]]:
    return [(change.kind, change.memory.content) for change in changes]


def home(city: str, **fields: Any) -> dict[str, Any]:
    return {"attribute": "home", "values": (city,), **fields}


LEEDS = "I live in Leeds"
OSLO = "I live in Oslo"


def test_a_new_claim_creates_a_row_with_its_fields_its_evidence_and_its_time() -> None:
    said = claim(LEEDS, said_at=NOW - 5, relation=Relation.SIBLING, name="Ana", holds_until=NOW + 5, **home("Leeds"))
    (change,) = consolidate([said], [], now=NOW, ids=ids)
    row = change.memory
    assert (change.kind, row.id, row.content) == (ChangeKind.CREATE, "id-0", LEEDS)
    assert (row.created_at, row.said_at, row.valid_from, row.expires_at) == (NOW, NOW - 5, NOW - 5, NOW + 5)
    assert (row.subject, row.name, row.attribute, row.values) == ("sibling", "Ana", "home", ("Leeds",))
    assert row.evidence == (Evidence(LEEDS, "t1"),)


def test_the_time_that_a_claim_names_is_the_time_from_which_it_holds() -> None:
    (change,) = consolidate([claim("I start at Baxter on Monday", holds_from=NOW + 9)], [], now=NOW, ids=ids)
    assert change.memory.valid_from == NOW + 9


def test_the_same_statement_updates_the_row_that_says_it() -> None:
    before = stored(LEEDS)
    (change,) = consolidate([claim("i live in  LEEDS!")], [before], now=NOW, ids=ids)
    assert (change.kind, change.memory.id, change.memory.content) == (ChangeKind.UPDATE, before.id, before.content)
    assert (change.memory.updated_at, change.memory.said_at, change.memory.created_at) == (NOW, NOW, before.created_at)
    assert before.confidence < change.memory.confidence < 1.0
    assert len(change.memory.evidence) == 2


def test_evidence_is_bounded_and_keeps_the_first() -> None:
    row = stored(LEEDS)
    first = row.evidence[0]
    for number in range(20):
        (change,) = consolidate([claim(LEEDS, turn=f"t{number}")], [row], now=NOW, ids=ids)
        row = change.memory
    assert len(row.evidence) == EVIDENCE_MAX
    assert (row.evidence[0], row.evidence[-1].turn_id) == (first, "t19")


def test_the_same_statement_of_another_project_is_another_row() -> None:
    changes = consolidate([claim(LEEDS, project="p")], [stored(LEEDS)], now=NOW, ids=ids)
    assert kinds(changes) == [(ChangeKind.CREATE, LEEDS)]


def test_another_value_of_a_single_valued_attribute_supersedes_and_says_which_field() -> None:
    old = stored(LEEDS, **home("Leeds"))
    changes = consolidate([claim(OSLO, **home("Oslo"))], [old], now=NOW, ids=ids)
    assert kinds(changes) == [(ChangeKind.CREATE, OSLO), (ChangeKind.SUPERSEDE, LEEDS)]
    gone = changes[1].memory
    assert (gone.status, gone.superseded_by, gone.superseded_at) == (MemoryStatus.SUPERSEDED, "id-0", NOW)
    assert (gone.invalid_at, gone.metadata["superseded_field"]) == (NOW, "home")
    assert gone.evidence == old.evidence


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"attribute": "trip", "values": ("Leeds",)}, {"attribute": "trip", "values": ("Oslo",)}),  # many values
        (home("Leeds"), {"attribute": "employer", "values": ("Oslo",)}),
        (home("Leeds"), home("Oslo", relation=Relation.SIBLING)),
        (home("Leeds", name="Ana"), home("Oslo", name="Mia")),
        (home("Leeds"), home("leeds")),
        (home("Leeds"), {"attribute": "home", "values": ()}),
        (home("Leeds"), home("Oslo", is_affirmed=False)),
        ({"values": ("Leeds",)}, {"values": ("Oslo",)}),  # no attribute
    ],
)
def test_whatever_differs_in_more_than_the_value_stands_beside_it(older: dict[str, Any], newer: dict[str, Any]) -> None:
    changes = consolidate([claim(OSLO, **newer)], [stored(LEEDS, **older)], now=NOW, ids=ids)
    assert kinds(changes) == [(ChangeKind.CREATE, OSLO)]


@pytest.mark.parametrize(("confidence", "is_replaced"), [(0.95, True), (0.6, False)])
def test_a_sure_verdict_supersedes_where_the_field_is_the_same(confidence: float, *, is_replaced: bool) -> None:
    old = stored("The appointment is on Monday", attribute="appointment", values=("Monday",))
    new = claim("The appointment is on Friday", attribute="appointment", values=("Friday",))
    said = {(0, old.id): PairVerdict(PairRelation.REPLACES, confidence)}
    changes = consolidate([new], [old], now=NOW, ids=ids, judged=Judged(verdicts=said))
    assert (ChangeKind.SUPERSEDE in [change.kind for change in changes]) is is_replaced


def test_a_sure_verdict_names_the_field_of_the_row_that_it_replaces() -> None:
    old = stored("I drive a Fiat", attribute="vehicle", values=("Fiat",))
    said = {(0, old.id): PairVerdict(PairRelation.REPLACES, 0.9)}
    changes = consolidate([claim("cycling only from here on")], [old], now=NOW, ids=ids, judged=Judged(verdicts=said))
    assert changes[1].memory.metadata["superseded_field"] == "vehicle"


DAY = 86_400.0


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({}, {"holds_until": NOW - DAY}),  # "I lived in Hamburg until 2015."
        ({}, {"holds_from": NOW + DAY}),  # "I move to Oslo next week."
        ({"holds_from": NOW + 9 * DAY}, {}),  # "I move to Oslo next week.", then "I live in Leeds."
    ],
)
@pytest.mark.parametrize("relation", [None, PairRelation.REPLACES])
def test_what_was_and_what_will_be_take_no_place_of_what_is(
    older: dict[str, Any], newer: dict[str, Any], relation: PairRelation | None
) -> None:
    old = stored(LEEDS, **home("Leeds", **older))
    said = {(0, old.id): PairVerdict(relation, 0.95)} if relation is not None else {}
    changes = consolidate([claim(OSLO, **home("Oslo", **newer))], [old], now=NOW, ids=ids, judged=Judged(verdicts=said))
    is_replaced = relation is not None and not newer  # what is now may well end a plan, where a reader says so
    assert (ChangeKind.SUPERSEDE in [change.kind for change in changes]) is is_replaced


@pytest.mark.parametrize(("days_ago", "is_over"), [(9, True), (0.5, False)])
@pytest.mark.parametrize("relation", [None, PairRelation.REPLACES])
def test_an_event_since_a_state_was_said_ends_it_where_a_reader_says_so(
    days_ago: float, relation: PairRelation | None, *, is_over: bool
) -> None:
    old = stored("I work at Baxter", said_at=NOW - days_ago * DAY, attribute="employer", values=("Baxter",))
    said = {(0, old.id): PairVerdict(relation, 0.95)} if relation is not None else {}
    new = claim("I quit yesterday", attribute="employer", holds_from=NOW - 2 * DAY, holds_until=NOW - DAY)
    changes = consolidate([new], [old], now=NOW, ids=ids, judged=Judged(verdicts=said))
    assert (ChangeKind.SUPERSEDE in [change.kind for change in changes]) is (is_over and relation is not None)


def test_one_plan_takes_the_place_of_another() -> None:
    old = stored("I move to Leeds in July", **home("Leeds", holds_from=NOW + 9 * DAY))
    new = claim("I move to Oslo in July", **home("Oslo", holds_from=NOW + 9 * DAY))
    assert ChangeKind.SUPERSEDE in [change.kind for change in consolidate([new], [old], now=NOW, ids=ids)]


@pytest.mark.parametrize(("confidence", "is_replaced"), [(0.95, False), (0.6, True)])
@pytest.mark.parametrize("act", [Act.STATE, Act.CORRECT])
def test_two_values_that_a_reader_is_sure_to_be_unrelated_both_stand_unless_one_corrects(
    confidence: float, act: Act, *, is_replaced: bool
) -> None:
    old = stored(LEEDS, **home("Leeds"))
    said = {(0, old.id): PairVerdict(PairRelation.UNRELATED, confidence)}
    category = "correction" if act is Act.CORRECT else "fact"
    new = claim("I grew up in Oslo", act=act, category=category, **home("Oslo"))
    changes = consolidate([new], [old], now=NOW, ids=ids, judged=Judged(verdicts=said))
    assert (ChangeKind.SUPERSEDE in [change.kind for change in changes]) is (is_replaced or act is Act.CORRECT)


@pytest.mark.parametrize(
    ("relation", "names", "is_replaced"),
    [
        (Relation.CHILD, ("", ""), False),
        (Relation.CHILD, ("Mia", ""), False),
        (Relation.CHILD, ("", "Leo"), False),
        (Relation.CHILD, ("Leo", "leo"), True),
        (Relation.PET, ("", "Rex"), False),
        (Relation.FRIEND, ("", ""), False),
        (Relation.PARENT, ("", ""), False),
        (Relation.PARTNER, ("", "Ana"), True),
        (Relation.USER, ("", ""), True),
    ],
)
def test_of_those_of_whom_one_has_several_only_an_equal_name_is_one(
    relation: Relation, names: tuple[str, str], *, is_replaced: bool
) -> None:
    old = stored("is 4", attribute="age", values=("4",), relation=relation, name=names[0])
    new = claim("is 7", attribute="age", values=("7",), relation=relation, name=names[1])
    changes = consolidate([new], [old], now=NOW, ids=ids)
    assert (ChangeKind.SUPERSEDE in [change.kind for change in changes]) is is_replaced


def test_a_verdict_supersedes_nothing_of_somebody_else() -> None:
    """Of a sentence about the user and another person the label may be either; of two other persons it may not."""
    old = stored("My son drives a Fiat", attribute="vehicle", values=("Fiat",), relation=Relation.CHILD)
    said = {(0, old.id): PairVerdict(PairRelation.REPLACES, 0.99)}
    new = claim("My sister drives a Skoda", attribute="vehicle", values=("Skoda",), relation=Relation.SIBLING)
    assert len(consolidate([new], [old], now=NOW, ids=ids, judged=Judged(verdicts=said))) == 1


def test_a_sure_verdict_of_the_same_confirms_the_older_row() -> None:
    old = stored(LEEDS, **home("Leeds"))
    said = {(0, old.id): PairVerdict(PairRelation.SAME, 0.95)}
    changes = consolidate(
        [claim("still living in Leeds", **home("Leeds"))], [old], now=NOW, ids=ids, judged=Judged(verdicts=said)
    )
    assert kinds(changes) == [(ChangeKind.UPDATE, LEEDS)]


def test_what_adds_a_value_is_never_swallowed_as_the_same() -> None:
    old = stored(LEEDS, **home("Leeds"))
    said = {(0, old.id): PairVerdict(PairRelation.SAME, 0.95)}
    new = claim("I live in Leeds, at 4 Mill Lane", attribute="home", values=("Leeds", "4 Mill Lane"))
    assert (ChangeKind.CREATE, new.text) in kinds(
        consolidate([new], [old], now=NOW, ids=ids, judged=Judged(verdicts=said))
    )


def test_two_claims_of_one_breath_hold_together() -> None:
    changes = consolidate(
        [claim("I live in Leeds", **home("Leeds")), claim("and in Oslo in summer", **home("Oslo"))],
        [],
        now=NOW,
        ids=ids,
    )
    assert [change.memory.status for change in changes] == [MemoryStatus.ACTIVE, MemoryStatus.ACTIVE]


def test_what_was_said_earlier_but_learnt_later_is_the_one_that_is_superseded() -> None:
    later = stored(OSLO, said_at=NOW, **home("Oslo"))
    changes = consolidate([claim(LEEDS, said_at=NOW - 500, **home("Leeds"))], [later], now=NOW + 1, ids=ids)
    (row,) = [change.memory for change in changes if change.memory.id == "id-0"]
    assert (row.status, row.superseded_by, row.invalid_at) == (MemoryStatus.SUPERSEDED, later.id, NOW)


def test_the_first_that_changes_a_row_supersedes_it_though_it_is_learnt_after_the_second() -> None:
    first = stored(LEEDS, **home("Leeds"))
    oslo = claim(OSLO, said_at=NOW, turn="t9", **home("Oslo"))
    fallen, last = [
        change.memory
        for row in (first.id, "last")
        for change in consolidate([oslo], [first], now=NOW + 1, ids=lambda _: "last")
        if change.memory.id == row
    ]
    york = claim("I live in York", said_at=NOW - 500, **home("York"))
    rows = {c.memory.id: c.memory for c in consolidate([york], [fallen, last], now=NOW + 2, ids=ids)}
    assert (rows[first.id].superseded_by, rows[first.id].invalid_at) == ("id-0", NOW - 500)
    assert rows[first.id].superseded_at == fallen.superseded_at
    assert (rows["id-0"].superseded_by, rows["id-0"].invalid_at) == (last.id, NOW)


def test_what_is_learnt_late_falls_to_what_changed_it_though_that_is_superseded_itself() -> None:
    second = replace(stored(OSLO, said_at=NOW - 50), status=MemoryStatus.SUPERSEDED, invalid_at=NOW, superseded_by="x")
    said = {(0, second.id): PairVerdict(PairRelation.REPLACES, 0.9)}
    late = claim(LEEDS, said_at=NOW - 90)
    (change,) = consolidate([late], [second], now=NOW, ids=ids, judged=Judged(verdicts=said))
    assert (change.memory.content, change.memory.superseded_by) == (LEEDS, second.id)


def test_what_was_said_again_before_it_was_superseded_is_the_same_row_though_it_is_learnt_late() -> None:
    row = replace(stored(LEEDS), status=MemoryStatus.SUPERSEDED, invalid_at=NOW, superseded_by="x")
    (before,) = consolidate([claim(LEEDS, said_at=NOW - 5)], [row], now=NOW + 9, ids=ids)
    (after,) = consolidate([claim(LEEDS, said_at=NOW + 5)], [row], now=NOW + 9, ids=ids)
    assert (before.memory.id, before.memory.status, len(before.memory.evidence)) == (row.id, row.status, 2)
    assert (after.kind, after.memory.status) == (ChangeKind.CREATE, MemoryStatus.ACTIVE)


def test_what_is_said_again_counts_from_then_on_and_supersedes_what_was_said_between() -> None:
    asked_for = replace(stored(LEEDS, **home("Leeds")), trust=Trust.EXPLICIT)
    between = stored(OSLO, said_at=NOW - 500, **home("Oslo"))
    changes = consolidate([claim(LEEDS, **home("Leeds"))], [asked_for, between], now=NOW, ids=ids)
    assert kinds(changes) == [(ChangeKind.UPDATE, LEEDS), (ChangeKind.SUPERSEDE, OSLO)]


@pytest.mark.parametrize(
    ("older", "newer", "is_replaced"),
    [
        (Trust.BOOTSTRAPPED, Act.STATE, False),
        (Trust.BOOTSTRAPPED, Act.CORRECT, True),
        (Trust.EXPLICIT, Act.STATE, False),
        (Trust.EXPLICIT, Act.REMEMBER, True),
        (Trust.INFERRED, Act.STATE, True),
        (Trust.TOOL, Act.STATE, True),
    ],
)
def test_what_was_said_in_passing_moves_nothing_that_was_given_or_asked_for(
    older: Trust, newer: Act, *, is_replaced: bool
) -> None:
    old = replace(stored(LEEDS, **home("Leeds")), trust=older)
    changes = consolidate([claim(OSLO, act=newer, **home("Oslo"))], [old], now=NOW, ids=ids)
    assert (ChangeKind.SUPERSEDE in [change.kind for change in changes]) is is_replaced


def test_a_repeat_leaves_out_what_is_done_and_compares_what_stands_with_all_others() -> None:
    old = stored(LEEDS, **home("Leeds"))
    first = consolidate([claim(OSLO, **home("Oslo"))], [old], now=NOW, ids=ids)
    standing = first[0].memory
    assert consolidate([claim(OSLO, **home("Oslo"))], [standing], now=NOW, ids=ids, done={0}) == []
    again = consolidate([claim(OSLO, **home("Oslo"))], [old, standing], now=NOW + 1, ids=ids, done=())
    assert (ChangeKind.SUPERSEDE, LEEDS) in kinds(again)


def test_what_an_answer_restated_gets_surer_when_the_user_calls_it_right() -> None:
    row, other = stored(LEEDS, **home("Leeds")), stored("I have a cat", attribute="pet", values=("cat",))
    said = Confirmation("You told me that you live in Leeds.", Scope("ann"), NOW)
    (change,) = consolidate([], [row, other], now=NOW, ids=ids, judged=Judged([said]))
    assert (change.memory.id, change.memory.content) == (row.id, LEEDS)
    assert change.memory.confidence > row.confidence
    assert change.memory.evidence == row.evidence


def test_a_question_that_was_barely_confirmed_adds_no_evidence_to_what_is_known() -> None:
    row = stored(LEEDS)
    asked = claim(LEEDS, role="assistant", quote="Do you live in Leeds?")
    (change,) = consolidate([asked], [row], now=NOW, ids=ids)
    assert (change.memory.evidence, change.memory.confidence) == (row.evidence, row.confidence)


def test_a_stored_plan_comes_back_as_it_was_made() -> None:
    changes = consolidate([claim(OSLO + " \ud800", **home("Oslo"))], [stored(LEEDS, **home("Leeds"))], now=NOW, ids=ids)
    plan = Plan(changes, ("gone",), {"r": {"count": 1}})
    assert decode(encode(plan)) == plan


@pytest.mark.parametrize("damaged", [b"", b"{}", b"[]", b'{"version": 5}', b'{"version": 99, "changes": []}'])
def test_a_plan_of_another_release_is_reported_and_never_guessed_at(damaged: bytes) -> None:
    with pytest.raises(UnreadablePlan):
        decode(damaged)


@pytest.mark.parametrize(("name", "expected"), [("Bramble", MemoryStatus.SUPERSEDED), ("Moss", MemoryStatus.ACTIVE)])
def test_who_has_the_same_name_is_the_same_whatever_the_relation(name: str, expected: MemoryStatus) -> None:
    known = stored("Bramble is four", relation=Relation.PET, name="Bramble")
    died = claim(f"{name} died", relation=Relation.FRIEND, name=name)
    sure = {(0, known.id): PairVerdict(PairRelation.REPLACES, 0.95)}
    changes = consolidate([died], [known], now=NOW, ids=ids, judged=Judged(verdicts=sure))
    found = {one.memory.id: one.memory.status for one in changes}
    assert found.get(known.id, MemoryStatus.ACTIVE) is expected
