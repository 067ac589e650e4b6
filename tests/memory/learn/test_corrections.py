"""What a correction changes: the statement that it means, and no other."""

from __future__ import annotations

from typing import Any

from claims import NOW, claim

from memory.learn.consolidation import Judged, consolidate
from memory.model import Act, ChangeKind, Claim, Memory, Relation, Trust
from memory.ports import PairRelation, PairVerdict
from tests.memory.learn.test_consolidation import LEEDS, home, ids, kinds, stored


def test_a_correction_that_stands_alone_supersedes_though_it_names_the_old_value() -> None:
    old = stored(LEEDS, **home("Leeds"))
    right = claim(
        "I live in Oslo, not in Leeds",
        act=Act.CORRECT,
        category="correction",
        attribute="home",
        values=("Oslo", "Leeds"),
    )
    changes = consolidate([right], [old], now=NOW, ids=ids)
    row = next(change.memory for change in changes if change.memory.id == "id-0")
    assert (row.content, row.category, row.trust) == (right.text, "correction", Trust.EXPLICIT)
    assert (ChangeKind.SUPERSEDE, LEEDS) in kinds(changes)


def meeting(content: str, *values: str, **fields: Any) -> Memory:
    return stored(content, attribute="appointment", values=values, **fields)


def leaning(words: str, *values: str, **fields: Any) -> Claim:
    fields = {"attribute": "appointment", "values": values, "leans": True, **fields}
    return claim(words, act=Act.CORRECT, category="correction", **fields)


def test_a_fragment_that_corrects_stands_with_the_statement_that_it_corrects() -> None:
    old = meeting("My appointment is on Monday", "Monday")
    changes = consolidate([leaning("no, Tuesday", "Tuesday")], [old], now=NOW, ids=ids)
    created = changes[0].memory
    assert (created.content, created.evidence[0].quote) == ("My appointment is on Monday. no, Tuesday", "no, Tuesday")
    assert (created.values, created.attribute) == (("Tuesday",), "appointment")
    assert (ChangeKind.SUPERSEDE, old.content) in kinds(changes)


def test_a_fragment_corrects_its_own_field_before_what_was_said_last() -> None:
    rows = [
        meeting("The call is on Monday", "Monday", said_at=NOW - 9),
        stored("I like tea", said_at=NOW - 1),
    ]
    (created, *_) = consolidate([leaning("no, Tuesday", "Tuesday")], rows, now=NOW, ids=ids)
    assert created.memory.content == "The call is on Monday. no, Tuesday"
    (created, *_) = consolidate(
        [leaning("I meant my son", attribute="family", relation=Relation.CHILD)], rows, now=NOW, ids=ids
    )
    assert (created.memory.content, created.memory.subject) == ("I like tea. I meant my son", "child")


def test_a_fragment_corrects_what_a_reader_is_surest_of_wherever_that_was_said() -> None:
    rows = [
        meeting("The call is on Monday", "Monday", said_at=NOW - 9),
        stored("The rent is 900 euros", said_at=NOW - 1),
        stored("The van cost 400 euros", said_at=NOW - 5),
    ]
    sure = {
        (0, rows[2].id): PairVerdict(PairRelation.REPLACES, 0.99),
        (0, rows[1].id): PairVerdict(PairRelation.REPLACES, 0.85),
    }
    said = leaning("sorry, pounds", "pounds", attribute="budget")
    (created, *_) = consolidate([said], rows, now=NOW, ids=ids, judged=Judged(verdicts=sure))
    assert created.memory.content == "The van cost 400 euros. sorry, pounds"


def test_a_fragment_that_corrects_nothing_known_is_not_stored() -> None:
    assert consolidate([leaning("no, Tuesday", "Tuesday")], [], now=NOW, ids=ids) == []
