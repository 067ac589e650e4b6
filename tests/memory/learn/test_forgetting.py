"""Forgetting is closed: only what a sure request names goes, and only what was said before it."""

from __future__ import annotations

from typing import Any

import pytest
from claims import NOW, claim, turn

from memory.learn.forgetting import (
    Reach,
    Request,
    is_overtaken,
    lasting,
    meant,
    outcomes_of,
    requests_of,
    spare,
)
from memory.model import Act, Evidence, Memory, Relation


def asked(text: str, *, act: Act = Act.FORGET, receipt_id: str = "", **fields: Any) -> Request:
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


def gone(request: Request, memories: list[Memory] = ALL, likeness: float = 0.0) -> list[str]:
    return meant(request, memories, [request.turn], lambda memory: likeness)


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
        ("Forget everything you know about me", Reach.EVERYTHING),
        ("Forget what I just said", Reach.PREVIOUS),
        ("Forget everything except my name", Reach.NOTHING),
        ("forget my diet for now", Reach.NOTHING),
        ("忘掉我的一切", Reach.EVERYTHING),
        ("Vergiss meine Adresse", Reach.TOPIC),
        ("Olvida mi dirección", Reach.TOPIC),
        ("忘掉我的地址", Reach.TOPIC),
    ],
)
def test_how_far_a_request_reaches(text: str, reach: Reach) -> None:
    assert asked(text).reach is reach


def test_everything_means_all_that_was_said_before() -> None:
    assert len(gone(asked("Forget everything you know about me"))) == len(ALL)


def test_what_i_just_said_means_the_turn_before() -> None:
    request = asked("Forget what I just said")
    before = turn("I live at 4 Mill Lane", turn_id="t0", at=NOW - 9)
    ids = meant(request, [HOME, known("I like tea", turn_id="t-1")], [before, request.turn], lambda memory: 0.0)
    assert ids == [HOME.id]


def test_half_of_the_words_are_enough_only_with_a_likeness_in_meaning() -> None:
    request = asked("forget the ski accident")
    assert gone(request, likeness=0.2) == []
    assert gone(asked("forget the skiing accident"), likeness=0.8) == [KNEE.id]


def test_a_withheld_message_teaches_nothing_and_others_do() -> None:
    text = "off the record: I hate my boss. I live in Leeds."
    said = turn(text)
    withheld = claim("off the record: I hate my boss.", act=Act.WITHHOLD)
    claims = [claim("I live in Leeds."), claim("I have a cat", turn="t0")]
    spared = spare(claims, requests_of([withheld], [said]), [turn("I have a cat", turn_id="t0", at=NOW - 9), said])
    assert [one.text for one in spared.kept] == ["I have a cat"]
    assert [one.text for one in spared.withheld] == ["I live in Leeds."]


def test_a_new_value_behind_a_request_is_learnt() -> None:
    text = "Forget my old address. I live in Oslo now."
    said = turn(text)
    requests = requests_of([claim("Forget my old address.", act=Act.FORGET)], [said])
    spared = spare([claim("I live in Oslo now.", attribute="home")], requests, [said])
    assert len(spared.kept) == 1


def test_what_is_learnt_late_heeds_a_request_that_was_made_after_it() -> None:
    later = lasting([asked("forget my address")])
    assert is_overtaken(later, HOME)
    assert is_overtaken(later, claim("I live in Oslo", attribute="home", said_at=NOW - 1))
    assert not is_overtaken(later, claim("I live in Oslo", attribute="home", said_at=NOW + 1))
    assert not is_overtaken(later, SISTERS_HOME)


def test_a_request_within_a_project_touches_that_project_alone() -> None:
    (request,) = requests_of([claim("forget my address", act=Act.FORGET, project="p")], [turn("forget my address")])
    assert request.turn.scope.project_id == ""  # the turn says where a request was made
    assert is_overtaken([request], HOME)


def test_a_receipt_says_what_went_or_that_nothing_matched() -> None:
    request = asked("forget my address", receipt_id="r1")
    assert outcomes_of([request], {0: ["m1"]}) == {"r1": {"forgot": ["m1"], "count": 1}}
    assert outcomes_of([request], {}) == {"r1": {"forgot": [], "count": 0, "reason": "nothing_matched"}}


def test_a_request_about_somebody_by_name_needs_the_name() -> None:
    leo = known("My son Leo hates mushrooms", attribute="food", subject="child")
    mia = known("My daughter Mia hates mushrooms", attribute="food", subject="child")
    request = asked("forget that Leo hates mushrooms", name="Leo", relation=Relation.CHILD)
    assert gone(request, [leo, mia]) == [leo.id]
