"""One row per statement, nothing destroyed; fields decide, never likeness. And what a correction changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from claims import NOW, claim

from memory.learn.consolidation import EVIDENCE_MAX, Judged, consolidate
from memory.learn.feedback import Confirmation
from memory.model import Act, Change, ChangeKind, Claim, Evidence, Memory, MemoryStatus, Relation, Scope, Trust
from memory.ports import PairRelation, PairVerdict
from memory.recall.notes.injection import newest_first

LEEDS, OSLO = "I live in Leeds", "I live in Oslo"
DAY = 86_400.0
SAME, REPLACES = PairVerdict(PairRelation.SAME, 0.95), PairVerdict(PairRelation.REPLACES, 0.95)


def learnt(
    *said: Claim, known: Sequence[Memory] = (), verdict: PairVerdict | None = None, now: float = NOW, **options: Any
) -> list[Change]:
    """What comes of these claims. `verdict`: of the first one and the first row that is known."""
    judged = Judged(verdicts={(0, known[0].id): verdict} if verdict is not None else {})
    return consolidate(said, known, now=now, ids=lambda ordinal: f"id-{ordinal}", **{"judged": judged, **options})


def supersedes(new: Claim, old: Memory, verdict: PairVerdict | None = None) -> bool:
    return ChangeKind.SUPERSEDE in [change.kind for change in learnt(new, known=[old], verdict=verdict)]


def stored(content: str, *, said_at: float = NOW - 1_000, **fields: Any) -> Memory:
    said = claim(content, turn=f"turn of {content}", said_at=said_at, **fields)
    (change,) = consolidate([said], [], now=said_at, ids=lambda ordinal: f"{content}/{ordinal}")
    return change.memory


def kinds(changes: list[Change]) -> list[tuple[ChangeKind, str]]:
    return [(change.kind, change.memory.content) for change in changes]


def home(city: str, **fields: Any) -> dict[str, Any]:
    return {"attribute": "home", "values": (city,), **fields}


LIVES_IN_LEEDS = stored(LEEDS, **home("Leeds"))


def test_a_new_claim_creates_a_row_with_its_fields_its_evidence_and_its_time() -> None:
    said = claim(LEEDS, said_at=NOW - 5, relation=Relation.SIBLING, name="Ana", holds_until=NOW + 5, **home("Leeds"))
    (change,) = learnt(said)
    row = change.memory
    assert (change.kind, row.id, row.content) == (ChangeKind.CREATE, "id-0", LEEDS)
    assert (row.created_at, row.said_at, row.valid_from, row.expires_at) == (NOW, NOW - 5, NOW - 5, NOW + 5)
    assert (row.subject, row.name, row.attribute, row.values) == ("sibling", "Ana", "home", ("Leeds",))
    assert row.evidence == (Evidence(LEEDS, "t1"),)
    (change,) = learnt(claim("I start at Baxter on Monday", holds_from=NOW + 9))
    assert change.memory.valid_from == NOW + 9


def test_the_same_statement_updates_the_row_that_says_it() -> None:
    before = stored(LEEDS)
    (change,) = learnt(claim("i live in  LEEDS!"), known=[before])
    assert (change.kind, change.memory.id, change.memory.content) == (ChangeKind.UPDATE, before.id, before.content)
    assert (change.memory.updated_at, change.memory.said_at, change.memory.created_at) == (NOW, NOW, before.created_at)
    assert before.confidence < change.memory.confidence < 1.0
    assert len(change.memory.evidence) == 2
    assert kinds(learnt(claim(LEEDS, project="p"), known=[before])) == [(ChangeKind.CREATE, LEEDS)]


def test_evidence_is_bounded_and_keeps_the_first() -> None:
    row, (first,) = stored(LEEDS), stored(LEEDS).evidence
    for number in range(20):
        row = learnt(claim(LEEDS, turn=f"t{number}"), known=[row])[0].memory
    assert (len(row.evidence), row.evidence[0], row.evidence[-1].turn_id) == (EVIDENCE_MAX, first, "t19")


def test_another_value_of_a_single_valued_attribute_supersedes_and_says_which_field() -> None:
    changes = learnt(claim(OSLO, **home("Oslo")), known=[LIVES_IN_LEEDS])
    assert kinds(changes) == [(ChangeKind.CREATE, OSLO), (ChangeKind.SUPERSEDE, LEEDS)]
    gone = changes[1].memory
    assert (gone.status, gone.superseded_by, gone.superseded_at) == (MemoryStatus.SUPERSEDED, "id-0", NOW)
    assert (gone.invalid_at, gone.metadata["superseded_field"]) == (NOW, "home")
    assert gone.evidence == LIVES_IN_LEEDS.evidence


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
    assert kinds(learnt(claim(OSLO, **newer), known=[stored(LEEDS, **older)])) == [(ChangeKind.CREATE, OSLO)]


def test_a_sure_verdict_supersedes_where_the_field_is_the_same() -> None:
    old = stored("The appointment is on Monday", attribute="appointment", values=("Monday",))
    new = claim("The appointment is on Friday", attribute="appointment", values=("Friday",))
    assert [supersedes(new, old, replace(REPLACES, confidence=one)) for one in (0.95, 0.6)] == [True, False]


@pytest.mark.parametrize(
    ("older", "newer", "is_replaced", "is_where_a_reader_says_so"),
    [
        ({}, {"holds_until": NOW - DAY}, False, False),  # "I lived in Hamburg until 2015."
        ({}, {"holds_from": NOW + DAY}, False, False),  # "I move to Oslo next week."
        ({"holds_from": NOW + 9 * DAY}, {}, False, True),  # "I move to Oslo next week.", then "I live in Leeds."
        ({"holds_from": NOW + 9 * DAY}, {"holds_from": NOW + 9 * DAY}, True, True),  # one plan and another
    ],
)
def test_what_was_and_what_will_be_take_no_place_of_what_is(
    older: dict[str, Any], newer: dict[str, Any], *, is_replaced: bool, is_where_a_reader_says_so: bool
) -> None:
    old, new = stored(LEEDS, **home("Leeds", **older)), claim(OSLO, **home("Oslo", **newer))
    assert [supersedes(new, old, one) for one in (None, REPLACES)] == [is_replaced, is_where_a_reader_says_so]


@pytest.mark.parametrize(("days_ago", "is_over"), [(9, True), (0.5, False)])
def test_an_event_since_a_state_was_said_ends_it_where_a_reader_says_so(days_ago: float, *, is_over: bool) -> None:
    old = stored("I work at Baxter", said_at=NOW - days_ago * DAY, attribute="employer", values=("Baxter",))
    new = claim("I quit yesterday", attribute="employer", holds_from=NOW - 2 * DAY, holds_until=NOW - DAY)
    assert [supersedes(new, old, one) for one in (None, REPLACES)] == [False, is_over]


@pytest.mark.parametrize(("confidence", "is_replaced"), [(0.95, False), (0.6, True)])
@pytest.mark.parametrize("act", [Act.STATE, Act.CORRECT])
def test_two_values_that_a_reader_is_sure_to_be_unrelated_both_stand_unless_one_corrects(
    confidence: float, act: Act, *, is_replaced: bool
) -> None:
    category = "correction" if act is Act.CORRECT else "fact"
    new = claim("I grew up in Oslo", act=act, category=category, **home("Oslo"))
    unrelated = PairVerdict(PairRelation.UNRELATED, confidence)
    assert supersedes(new, LIVES_IN_LEEDS, unrelated) is (is_replaced or act is Act.CORRECT)


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
    assert supersedes(new, old) is is_replaced


def test_a_verdict_supersedes_nothing_of_somebody_else_and_names_the_field_of_what_it_does() -> None:
    """Of a sentence about the user and another person the label may be either; of two other persons it may not."""
    old = stored("My son drives a Fiat", attribute="vehicle", values=("Fiat",), relation=Relation.CHILD)
    new = claim("My sister drives a Skoda", attribute="vehicle", values=("Skoda",), relation=Relation.SIBLING)
    assert len(learnt(new, known=[old], verdict=REPLACES)) == 1
    changes = learnt(claim("cycling only from here on"), known=[old], verdict=REPLACES)
    assert changes[1].memory.metadata["superseded_field"] == "vehicle"


@pytest.mark.parametrize(("name", "is_replaced"), [("Bramble", True), ("Moss", False)])
def test_who_has_the_same_name_is_the_same_whatever_the_relation(name: str, *, is_replaced: bool) -> None:
    known = stored("Bramble is four", relation=Relation.PET, name="Bramble")
    assert supersedes(claim(f"{name} died", relation=Relation.FRIEND, name=name), known, REPLACES) is is_replaced


@pytest.mark.parametrize(
    ("relation", "act", "verdict", "is_replaced"),
    [
        (Relation.PARTNER, Act.CORRECT, REPLACES, True),
        (Relation.PARTNER, Act.STATE, REPLACES, False),
        (Relation.CHILD, Act.CORRECT, None, False),  # of which one may have several
        (Relation.CHILD, Act.CORRECT, REPLACES, True),
    ],
)
def test_a_corrected_name_is_what_changes_and_another_name_is_somebody_else(
    relation: Relation, act: Act, verdict: PairVerdict | None, *, is_replaced: bool
) -> None:
    names: dict[str, Any] = {"attribute": "name", "relation": relation}
    category = "correction" if act is Act.CORRECT else "fact"
    known = stored("She is called Marie", name="Marie", values=("Marie",), **names)
    new = claim("She is called Maria", act=act, category=category, name="Maria", values=("Maria",), **names)
    assert supersedes(new, known, verdict) is is_replaced


def test_a_sure_verdict_of_the_same_confirms_the_older_row_unless_a_value_is_added() -> None:
    again = claim("still living in Leeds", **home("Leeds"))
    assert kinds(learnt(again, known=[LIVES_IN_LEEDS], verdict=SAME)) == [(ChangeKind.UPDATE, LEEDS)]
    more = claim("I live in Leeds, at 4 Mill Lane", attribute="home", values=("Leeds", "4 Mill Lane"))
    assert (ChangeKind.CREATE, more.text) in kinds(learnt(more, known=[LIVES_IN_LEEDS], verdict=SAME))


def test_two_claims_of_one_breath_hold_together_and_the_later_is_the_newer() -> None:
    changes = learnt(claim("I live in Leeds", **home("Leeds")), claim("and in Oslo in summer", **home("Oslo")))
    assert [change.memory.status for change in changes] == [MemoryStatus.ACTIVE, MemoryStatus.ACTIVE]
    assert newest_first([one.memory for one in changes]) == [one.memory for one in reversed(changes)]


def test_what_took_the_words_of_a_fact_along_lets_go_of_them_when_that_is_over() -> None:
    leaning = stored("I live in Leeds. It rains there.")
    (own, *_) = leaning.evidence
    of_turn = LIVES_IN_LEEDS.evidence[0].turn_id
    leaning = replace(leaning, evidence=(replace(own, clause="It rains there.", turn_id=of_turn),))
    elsewhere = stored("They say: I live in Leeds.")
    changes = learnt(claim(OSLO, **home("Oslo")), known=[LIVES_IN_LEEDS, leaning, elsewhere])
    assert (ChangeKind.SUPERSEDE, LEEDS) in kinds(changes)
    assert (ChangeKind.UPDATE, "It rains there.") in kinds(changes)
    assert elsewhere.id not in [change.memory.id for change in changes]


def test_what_was_said_earlier_but_learnt_later_is_the_one_that_is_superseded() -> None:
    later = stored(OSLO, said_at=NOW, **home("Oslo"))
    changes = learnt(claim(LEEDS, said_at=NOW - 500, **home("Leeds")), known=[later], now=NOW + 1)
    (row,) = [change.memory for change in changes if change.memory.id == "id-0"]
    assert (row.status, row.superseded_by, row.invalid_at) == (MemoryStatus.SUPERSEDED, later.id, NOW)


def test_the_first_that_changes_a_row_supersedes_it_though_it_is_learnt_after_the_second() -> None:
    first = LIVES_IN_LEEDS
    oslo = claim(OSLO, said_at=NOW, turn="t9", **home("Oslo"))
    changes = consolidate([oslo], [first], now=NOW + 1, ids=lambda _: "last")
    last, fallen = (change.memory for change in changes)
    york = claim("I live in York", said_at=NOW - 500, **home("York"))
    rows = {c.memory.id: c.memory for c in learnt(york, known=[fallen, last], now=NOW + 2)}
    assert (rows[first.id].superseded_by, rows[first.id].invalid_at) == ("id-0", NOW - 500)
    assert rows[first.id].superseded_at == fallen.superseded_at
    assert (rows["id-0"].superseded_by, rows["id-0"].invalid_at) == (last.id, NOW)


def test_what_is_learnt_late_falls_to_what_changed_it_or_is_said_again_though_that_is_superseded_itself() -> None:
    superseded: dict[str, Any] = {"status": MemoryStatus.SUPERSEDED, "invalid_at": NOW, "superseded_by": "x"}
    second = replace(stored(OSLO, said_at=NOW - 50), **superseded)
    (change,) = learnt(claim(LEEDS, said_at=NOW - 90), known=[second], verdict=REPLACES)
    assert (change.memory.content, change.memory.superseded_by) == (LEEDS, second.id)
    row = replace(stored(LEEDS), **superseded)
    (before,) = learnt(claim(LEEDS, said_at=NOW - 5), known=[row], now=NOW + 9)
    (after,) = learnt(claim(LEEDS, said_at=NOW + 5), known=[row], now=NOW + 9)
    assert (before.memory.id, before.memory.status, len(before.memory.evidence)) == (row.id, row.status, 2)
    assert (after.kind, after.memory.status) == (ChangeKind.CREATE, MemoryStatus.ACTIVE)


def test_what_is_said_again_counts_from_then_on_and_supersedes_what_was_said_between() -> None:
    asked_for = replace(LIVES_IN_LEEDS, trust=Trust.EXPLICIT)
    between = stored(OSLO, said_at=NOW - 500, **home("Oslo"))
    changes = learnt(claim(LEEDS, **home("Leeds")), known=[asked_for, between])
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
    assert supersedes(claim(OSLO, act=newer, **home("Oslo")), replace(LIVES_IN_LEEDS, trust=older)) is is_replaced


def test_a_repeat_leaves_out_what_is_done_and_compares_what_stands_with_all_others() -> None:
    oslo = claim(OSLO, **home("Oslo"))
    standing = learnt(oslo, known=[LIVES_IN_LEEDS])[0].memory
    assert learnt(oslo, known=[standing], done={0}) == []
    again = learnt(oslo, known=[LIVES_IN_LEEDS, standing], now=NOW + 1, done=())
    assert (ChangeKind.SUPERSEDE, LEEDS) in kinds(again)


def test_what_an_answer_restated_gets_surer_when_the_user_calls_it_right_but_not_by_a_question_alone() -> None:
    row, other = LIVES_IN_LEEDS, stored("I have a cat", attribute="pet", values=("cat",))
    said = Confirmation("You told me that you live in Leeds.", Scope("ann"), NOW)
    (change,) = learnt(known=[row, other], judged=Judged([said]))
    assert (change.memory.id, change.memory.content, change.memory.evidence) == (row.id, LEEDS, row.evidence)
    assert change.memory.confidence > row.confidence
    row = stored(LEEDS)
    (change,) = learnt(claim(LEEDS, role="assistant", quote="Do you live in Leeds?"), known=[row])
    assert (change.memory.evidence, change.memory.confidence) == (row.evidence, row.confidence)


def test_a_correction_that_stands_alone_supersedes_though_it_names_the_old_value() -> None:
    text, values = "I live in Oslo, not in Leeds", ("Oslo", "Leeds")
    right = claim(text, act=Act.CORRECT, category="correction", attribute="home", values=values)
    changes = learnt(right, known=[LIVES_IN_LEEDS])
    assert kinds(changes) == [(ChangeKind.CREATE, text), (ChangeKind.SUPERSEDE, LEEDS)]
    assert (changes[0].memory.category, changes[0].memory.trust) == ("correction", Trust.EXPLICIT)


def meeting(content: str, *values: str, **fields: Any) -> Memory:
    return stored(content, attribute="appointment", values=values, **fields)


def leaning(words: str, *values: str, **fields: Any) -> Claim:
    fields = {"attribute": "appointment", "values": values, "leans": True, **fields}
    return claim(words, act=Act.CORRECT, category="correction", **fields)


def test_a_fragment_stands_with_the_words_that_it_corrects_and_what_else_took_them_along_does_not() -> None:
    old = meeting("My exam is on Monday", "Monday")
    quoted = Evidence("It scares me.", old.evidence[0].turn_id)
    scares = replace(stored("My exam is on Monday. It scares me."), evidence=(quoted,))
    changes = learnt(leaning("no, Tuesday", "Tuesday", turn=quoted.turn_id), known=[old, scares])
    stands, created = "My exam is on Monday. no, Tuesday", changes[0].memory
    assert [kind for kind, _ in kinds(changes)] == [ChangeKind.CREATE, ChangeKind.SUPERSEDE, ChangeKind.UPDATE]
    assert [content for _, content in kinds(changes)] == [stands, old.content, "It scares me."]
    assert [one.quote for one in created.evidence] == ["no, Tuesday"]
    assert (created.values, created.attribute) == (("Tuesday",), "appointment")


@pytest.mark.parametrize(
    ("content", "corrects", "stands"),
    [
        ("My exam is on Monday (2025-06-09)", "My exam is on Monday no, Tuesday", "My exam is on Monday no, Tuesday"),
        ("The call is on Monday", "no, Tuesday", "The call is on Monday. no, Tuesday"),  # not what was said last
    ],
)
def test_a_fragment_corrects_what_it_quotes_or_its_own_field_before_what_was_said_last(
    content: str, corrects: str, stands: str
) -> None:
    rows = [meeting(content, "Monday", said_at=NOW - 9), stored("I like tea", said_at=NOW - 1)]
    assert learnt(leaning(corrects, "Tuesday"), known=rows)[0].memory.content == stands
    (created, *_) = learnt(leaning("I meant my son", attribute="family", relation=Relation.CHILD), known=rows)
    assert (created.memory.content, created.memory.subject) == ("I like tea. I meant my son", "child")


def test_a_fragment_corrects_what_the_answer_before_it_restates() -> None:
    rows = [meeting(one, said_at=NOW - 9) for one in ("My flight to Oslo is on Friday", "My exam is on Monday")]
    no = leaning("no, Tuesday", "Tuesday")
    sure = {(0, rows[1].id): PairVerdict(PairRelation.REPLACES, 0.99)}
    told = [Confirmation("You like tea.\nYour flight is on Friday.", no.scope, no.said_at, is_right=False)]
    (created, superseded) = learnt(no, known=rows, judged=Judged(told, sure))
    assert created.memory.content == "My flight to Oslo is on Friday. no, Tuesday"
    assert superseded.memory.id == rows[0].id


def test_a_fragment_corrects_what_a_reader_is_surest_of_wherever_that_was_said_and_is_not_stored_else() -> None:
    assert learnt(leaning("no, Tuesday", "Tuesday")) == []
    rows = [
        meeting("The call is on Monday", "Monday", said_at=NOW - 9),
        stored("The rent is 900 euros", said_at=NOW - 1),
        stored("The van cost 400 euros", said_at=NOW - 5),
    ]
    shares = {(0, rows[2].id): 0.99, (0, rows[1].id): 0.85}
    sure = Judged(verdicts={pair: PairVerdict(PairRelation.REPLACES, share) for pair, share in shares.items()})
    (created, *_) = learnt(leaning("sorry, pounds", "pounds", attribute="budget"), known=rows, judged=sure)
    assert created.memory.content == "The van cost 400 euros. sorry, pounds"
