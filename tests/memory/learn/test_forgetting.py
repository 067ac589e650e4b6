"""Forgetting is closed: only what a sure request names goes, and only what was said before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from claims import NOW, claim, turn

from memory.learn.forgetting import (
    ForgetMatches,
    ForgetReach,
    ForgetRequest,
    is_forgotten_later,
    lasting,
    matching_ids,
    outcomes_of,
    requests_of,
    similar_ids,
    split_claims,
)
from memory.model import Act, Evidence, Memory, Relation


def asked(text: str, *, act: Act = Act.FORGET, receipt_id: str = "", **fields: Any) -> ForgetRequest:
    (request,) = requests_of([claim(text, act=act, **fields)], [turn(text, receipt_id=receipt_id)])
    return request


def known(content: str, *, said_at: float = NOW - 9, turn_id: str = "t0", **fields: Any) -> Memory:
    return Memory(
        id=content,
        user_id="ann",
        content=content,
        created_at=said_at,
        updated_at=said_at,
        said_at=said_at,
        evidence=(Evidence(content, turn_id),),
        **fields,
    )


HOME = known("I live at 4 Mill Lane", attribute="home", values=("4 Mill Lane",))
SISTERS_HOME = known("My sister lives in Oslo", attribute="home", values=("Oslo",), subject="sibling")
KNEE = known("I tore my left knee while skiing", attribute="health")
JOB = known("I am a welder at Baxter", attribute="occupation", values=("welder",))
ALL = [HOME, SISTERS_HOME, KNEE, JOB]


def gone(request: ForgetRequest, memories: list[Memory] = ALL) -> list[str]:
    return matching_ids(request, memories, [request.turn])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please forget my address", [HOME]),
        ("delete what you know about my knee", [KNEE]),
        ("forget where my sister lives", [SISTERS_HOME]),
        ("Forget about the welder thing at Baxter", [JOB]),
        ("forget my shoe size", []),
        ("forget my sister's job", []),
    ],
)
def test_what_a_request_names_goes_and_nothing_else(text: str, expected: list[Memory]) -> None:
    assert gone(asked(text)) == [memory.id for memory in expected]


def test_a_request_of_which_the_reader_is_not_sure_is_none() -> None:
    assert requests_of([claim("forget my address", act=Act.FORGET, confidence=0.6)], [turn("forget my address")]) == []


def test_a_request_reaches_back_never_forward() -> None:
    assert gone(asked("forget my address"), [known(HOME.content, said_at=NOW + 1, attribute="home")]) == []


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("Forget everything you know about me", ForgetReach.EVERYTHING),
        ("Forget what I just said", ForgetReach.PREVIOUS),
        ("Forget everything except my name", ForgetReach.NOTHING),
        ("forget my diet for now", ForgetReach.NOTHING),
        ("忘掉我的一切", ForgetReach.EVERYTHING),
        ("Vergiss meine Adresse", ForgetReach.TOPIC),
        ("Olvida mi dirección", ForgetReach.TOPIC),
        ("忘掉我的地址", ForgetReach.TOPIC),
    ],
)
def test_how_far_a_request_reaches(text: str, reach: ForgetReach) -> None:
    assert asked(text).reach is reach


def test_what_i_just_said_means_the_turn_before() -> None:
    request = asked("Forget what I just said")
    before = turn("I live at 4 Mill Lane", turn_id="t0", at=NOW - 9)
    ids = matching_ids(request, [HOME, known("I like tea", turn_id="t-1")], [before, request.turn])
    assert ids == [HOME.id]


REX = known("My dog Rex chews shoes", subject="pet", name="Rex", attribute="pet")
MIA = known("My cat Mia is 3 years old", subject="pet", name="Mia", attribute="age", values=("3 years old",))
EX = known("My ex-wife kept the house", subject="other")
JANE = known("My coworker Jane has a baby", subject="other", name="Jane")
ANN = known("My daughter Ann is in Year 3", subject="child", name="Ann")
MUM = known("My mum lives in Hull", subject="parent", attribute="home", values=("Hull",))
DAD = known("My dad lives in Hull", subject="parent", attribute="home", values=("Hull",))
PEOPLE = [REX, MIA, EX, JANE, ANN, MUM, DAD, SISTERS_HOME]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vergiss alles über meinen Hund", [REX]),
        ("Forget everything about my dog", [REX]),
        ("Remove everything about my pets", [REX, MIA]),
        ("Olvida todo sobre mi gato", [MIA]),
        ("忘掉关于我的狗的一切", [REX]),
        ("Remove everything about my ex", [EX]),
        ("Remove everything about my neighbour", []),
        ("Forget everything about my baby", []),
        ("Forget where my mum lives", [MUM]),
        ("Forget all about my mum and dad", [MUM, DAD]),
        ("Forget everything about my son", []),
        ("Forget everything about my friend", []),
        ("Forget everything about my wife's sister", []),
    ],
)
def test_who_is_named_by_what_they_are_goes_and_nobody_else_of_the_kind(text: str, expected: list[Memory]) -> None:
    assert gone(asked(text), PEOPLE) == [memory.id for memory in expected]


@pytest.mark.parametrize(
    ("text", "content", "fields"),
    [
        ("Forget that I like red wine.", "I like white wine", {"attribute": "drink", "values": ("white wine",)}),
        ("Please forget that my cat Milo is sick", "My cat Milo is 3 years old", {"subject": "pet", "name": "Milo"}),
        ("Forget that I applied at Siemens", "I work at Siemens", {"attribute": "employer", "values": ("Siemens",)}),
        ("忘掉我喜欢红葡萄酒", "我喜欢白葡萄酒", {"attribute": "drink", "values": ("白葡萄酒",)}),
        ("forget the ski accident", KNEE.content, {"attribute": "health"}),
    ],
)
def test_a_neighbour_of_what_is_named_stays_and_the_receipt_says_so(
    text: str, content: str, fields: dict[str, Any]
) -> None:
    memory, request = known(content, **fields), asked(text, receipt_id="r1")
    assert gone(request, [memory]) == []
    assert similar_ids(request, [memory], lambda one: 0.5) == []
    ids = similar_ids(request, [memory], lambda one: 0.69)
    assert ids == [memory.id]
    (outcome,) = outcomes_of([request], {0: ForgetMatches((), ids)}).values()
    assert outcome == {"forgot": [], "count": 0, "reason": "nothing_matched", "similar": ids}


def test_what_goes_is_not_named_as_similar() -> None:
    request = asked("vergiss alles über meinen Hund")
    assert similar_ids(request, PEOPLE, lambda memory: 0.9) == [MIA.id]
    assert similar_ids(asked("Forget everything you know about me"), PEOPLE, lambda memory: 0.9) == []


def test_a_name_that_the_reader_did_not_see_counts_where_a_memory_has_it() -> None:
    assert gone(asked("Forget everything about Rex"), PEOPLE) == [REX.id]
    assert gone(asked("Forget everything about Jane"), PEOPLE) == [JANE.id]
    assert gone(asked("Forget everything about my dog Rex"), PEOPLE) == [REX.id]


def test_a_name_is_a_whole_word() -> None:
    request = asked("forget that Ann is in Year 3", name="Ann", relation=Relation.CHILD)
    joanne = known("My friend Joanne teaches Year 3", subject="friend", name="Joanne")
    assert gone(request, [joanne, ANN]) == [ANN.id]


def test_a_withheld_message_teaches_nothing_and_others_do() -> None:
    text = "off the record: I hate my boss. I live in Leeds."
    said = turn(text)
    withheld = claim("off the record: I hate my boss.", act=Act.WITHHOLD)
    claims = [claim("I live in Leeds."), claim("I have a cat", turn="t0")]
    spared = split_claims(
        claims, requests_of([withheld], [said]), [turn("I have a cat", turn_id="t0", at=NOW - 9), said]
    )
    assert [one.text for one in spared.kept] == ["I have a cat"]
    assert [one.text for one in spared.withheld] == ["I live in Leeds."]


def test_a_new_value_behind_a_request_is_learnt() -> None:
    text = "Forget my old address. I live in Oslo now."
    said = turn(text)
    requests = requests_of([claim("Forget my old address.", act=Act.FORGET)], [said])
    spared = split_claims([claim("I live in Oslo now.", attribute="home")], requests, [said])
    assert len(spared.kept) == 1


def test_what_is_learnt_late_heeds_a_request_that_was_made_after_it() -> None:
    later = lasting([asked("forget my address")])
    assert is_forgotten_later(later, HOME)
    assert is_forgotten_later(later, claim("I live in Oslo", attribute="home", said_at=NOW - 1))
    assert not is_forgotten_later(later, claim("I live in Oslo", attribute="home", said_at=NOW + 1))
    assert not is_forgotten_later(later, SISTERS_HOME)


def test_a_request_within_a_project_touches_that_project_alone() -> None:
    said = turn("forget my address")
    said = replace(said, scope=replace(said.scope, project_id="p"))
    (request,) = requests_of([claim("forget my address", act=Act.FORGET, project="p")], [said])
    assert is_forgotten_later([request], replace(HOME, project_id="p"))
    assert not is_forgotten_later([request], HOME)
    assert not is_forgotten_later([request], replace(HOME, project_id="q"))
    assert is_forgotten_later(
        [asked("forget my address")], replace(HOME, project_id="p")
    )  # made outside of any: in all


def test_a_receipt_says_what_went_or_that_nothing_matched() -> None:
    request = asked("forget my address", receipt_id="r1")
    assert outcomes_of([request], {0: ForgetMatches(["m1"])}) == {"r1": {"forgot": ["m1"], "count": 1}}
    assert outcomes_of([request], {}) == {"r1": {"forgot": [], "count": 0, "reason": "nothing_matched"}}


def test_a_request_about_somebody_by_name_needs_the_name() -> None:
    leo = known("My son Leo hates mushrooms", attribute="food", subject="child")
    mia = known("My daughter Mia hates mushrooms", attribute="food", subject="child")
    request = asked("forget that Leo hates mushrooms", name="Leo", relation=Relation.CHILD)
    assert gone(request, [leo, mia]) == [leo.id]
