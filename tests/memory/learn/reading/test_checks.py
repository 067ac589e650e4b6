"""Claims of a model, checked: units exist, what is added stands in the quote, dates follow from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from reading_parts import AT, a_claim, said

from memory.learn.reading.checks import CheckedAnswer, check_answer, distinct_claims, merge_second_answer
from memory.learn.reading.prompting import ShippedChat, shipped_chats
from memory.learn.reading.transcript import transcripts, written_chat
from memory.model import Act, Claim, Relation, Role, Turn

MESSAGE = "My brother Levi is a vet. He has two cats. Can you name a third one?"
ASSERTED = a_claim(2, act="assert")  # which is no act


def check(*items: Any, turns: list[Turn] | None = None, context: list[Turn] | None = None) -> CheckedAnswer:
    (part,) = transcripts(turns or said(MESSAGE), context=context or [])
    return check_answer(items, part, made_by="a model")


def sound(*items: Any, turns: list[Turn] | None = None, context: list[Turn] | None = None) -> Claim:
    """The only claim; nothing is wrong with it."""
    found = check(*items, turns=turns, context=context)
    assert found.objections == ()
    (placed,) = found.sound
    return placed.claim


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_the_quote_runs_from_the_first_unit_to_the_last_word_for_word() -> None:
    claim = sound(a_claim(1, 2, about="sibling", name="levi", attr="occupation", values=["VET"]))
    assert claim.text == claim.evidence.quote == "My brother Levi is a vet. He has two cats."
    assert (claim.relation, claim.name, claim.values) == (Relation.SIBLING, "Levi", ("vet",))
    assert (claim.evidence.turn_id, claim.evidence.role, claim.made_by) == ("t0", Role.USER, "a model")
    author = a_claim(1, name="Bo", attr="name", values=["Bo"])
    assert sound(author, turns=said("My name is Bo.")).name == ""  # it is a value


@pytest.mark.parametrize("units", [[], [0], [4], [-1], [1, 9], [1, 3]])
def test_units_that_do_not_exist_or_are_no_neighbours_make_no_claim(units: list[int]) -> None:
    found = check(a_claim(*units))
    assert (found.sound, found.doubtful) == ((), ())
    assert '"u"' in found.objections[0]


def test_units_with_pasted_text_between_them_or_too_much_text_make_no_claim() -> None:
    turns = said("I wrote this:\n\n> all men are brothers\n\nI am proud of it.")
    assert check(a_claim(1, 2), turns=turns).sound == ()
    assert sound(a_claim(2), turns=turns).text == "I am proud of it."
    assert check(a_claim(1, 2, 3), turns=said("I like pears and plums, " * 60)).sound == ()


@pytest.mark.parametrize("item", [{}, 7, "claim", None, {"u": [1]}, {"u": ["one"], "act": "state"}, [1, 2], ASSERTED])
def test_what_has_not_the_form_of_a_claim_is_an_objection_never_an_error(item: Any) -> None:
    found = check(item, a_claim(1))
    assert len(found.sound) == len(found.objections) == 1


@pytest.mark.parametrize(
    "fields",
    [
        *({"about": "sibling", "name": "Leo"}, {"about": "brother"}, {"attr": "job"}, {"category": "stuff"}),
        *({"from": "2031-01-01"}, {"until": "soon"}, {"when": "is", "from": "2024-06-04", "until": "2024-06-01"}),
    ],
)
def test_a_field_that_fails_is_left_out_and_objected_to(fields: dict[str, Any]) -> None:
    found = check(a_claim(1, **fields))
    assert (len(found.sound), len(found.doubtful), len(found.objections)) == (0, 1, 1)
    claim = found.doubtful[0].claim
    assert (claim.values, claim.name, claim.attribute, claim.category) == ((), "", "none", "fact")
    assert (claim.holds_from, claim.holds_until) == (None, None)


@pytest.mark.parametrize("values", [["dentist"], ["5"], "dentist", ["a vet", "5"]])
def test_values_that_do_not_stand_are_left_out_and_without_any_left_it_is_no_claim(values: list[str]) -> None:
    found = check(a_claim(1, values=values))
    assert [placed.claim.values for placed in found.doubtful] == [("a vet",)] * ("a vet" in values)
    assert (len(found.sound), len(found.objections)) == (0, 1)


def test_numbers_and_single_words_are_taken_for_the_lists_that_they_stand_for() -> None:
    for values, taken in (([15, "hens"], ("15", "hens")), ("hens", ("hens",))):
        assert sound(a_claim(u=1, values=values), turns=said("I keep 15 hens.")).values == taken


@pytest.mark.parametrize("text", ["We've sold the caravan.", "I don't eat fish.", "国庆我不去了。"])
@pytest.mark.parametrize("denies", [True, False])
def test_whether_a_sentence_denies_is_for_the_model_to_say(text: str, *, denies: bool) -> None:
    assert sound(a_claim(1, no=denies), turns=said(text)).is_affirmed is not denies


FOUR = "I'm Ada, 34, vegetarian and lactose intolerant. My son Tim can't swim, he is six."


def test_each_fact_of_a_sentence_is_a_claim_that_quotes_the_sentence() -> None:
    items = [
        a_claim(1, clause="I'm Ada", attr="name", values=["Ada"]),
        a_claim(1, clause="vegetarian", content="I'm vegetarian", attr="diet", values=["vegetarian"]),
        a_claim(1, clause="Lactose  intolerant", content="I am lactose intolerant", values=["lactose intolerant"]),
        a_claim(2, clause="he is six", content="Tim is six", about="child", name="Tim", values=["six"]),
    ]
    found = check(*reversed(items), turns=said(FOUR))
    assert found.objections == ()
    claims = distinct_claims(found.sound)
    assert [claim.text for claim in claims] == ["I'm Ada", "I'm vegetarian", "I am lactose intolerant", "Tim is six"]
    assert [claim.evidence.clause for claim in claims] == ["I'm Ada", "vegetarian", "lactose intolerant", "he is six"]
    first, second = FOUR.split(" My ")
    assert [claim.evidence.quote for claim in claims] == [first] * 3 + [f"My {second}"]


@pytest.mark.parametrize(
    "content",
    [
        "I'm vegan",  # a word of its own
        "I've been vegetarian for 20 years",
        "Lena is vegetarian",
        "I'm not vegetarian",
        "I am lactose intolerant",  # without its value
        "vegetarian " * 60,
    ],
)
def test_content_that_adds_something_gives_way_to_the_clause_and_is_objected_to(content: str) -> None:
    found = check(a_claim(1, clause="vegetarian", content=content, values=["vegetarian"]), turns=said(FOUR))
    assert [placed.claim.text for placed in found.doubtful] == ["vegetarian"]
    assert '"content"' in found.objections[0]


@pytest.mark.parametrize(
    ("text", "clause", "content", "is_kept"),
    [
        ("I can't stand mushrooms or olives.", "olives", "I can't stand olives", True),
        ("I don't eat meat or fish.", "fish", "I don't eat fish", True),
        ("我不吃牛肉和羊肉。", "羊肉", "我不吃羊肉", True),
        ("I eat fish, but no meat.", "no meat", "I eat meat", False),
        ("I'm vegetarian. My son can't swim.", "vegetarian", "I'm not vegetarian", False),
    ],
)
def test_content_denies_what_its_sentence_denies(text: str, clause: str, content: str, *, is_kept: bool) -> None:
    found = check(a_claim(1, clause=clause, content=content), turns=said(text))
    (placed,) = found.sound if is_kept else found.doubtful
    assert placed.claim.text == (content if is_kept else clause)


def test_content_takes_no_word_of_another_turn_or_of_the_assistant() -> None:
    turns = said("He has two cats.", "My brother Levi is a vet.", answers=["So Levi does?"])
    (placed,) = check(a_claim(1, content="Levi has two cats", values=["two cats"]), turns=turns).doubtful
    assert placed.claim.text == "He has two cats."
    turns = said("My brother Levi lives in Tallinn.", "I visit him there.", answers=["I see."])
    for fields in ({"content": "I visit Levi there"}, {"content": "I visit Levi there", "name": "Levi"}):
        (placed,) = check(a_claim(2, about="sibling", **fields), turns=turns).doubtful
        assert (placed.claim.text, placed.claim.name) == ("I visit him there.", "")
    assert check(a_claim(2, content="I visit him in Tallinn", values=["Tallinn"]), turns=turns).refused == 1


@pytest.mark.parametrize(("act", "about", "name"), [("correct", "child", ""), ("state", "sibling", "Levi")])
def test_what_stands_in_place_of_a_pronoun_may_stand_in_what_was_said_before(act: str, about: str, name: str) -> None:
    turns = said("My brother Levi lives in Tallinn. I visit him there.")
    fields = {"act": act, "about": about, "name": name, "values": ["Tallinn"]}
    claim = sound(a_claim(2, content="I visit Levi in Tallinn", **fields), turns=turns)
    assert (claim.text, claim.values, claim.name) == ("I visit Levi in Tallinn", ("Tallinn",), name)
    assert check(a_claim(2, content="I visit him", **fields), turns=turns).refused == 1
    spoilt = check(a_claim(2, content="I visit Levi in Tallinn by ferry", **fields), turns=turns).doubtful[0].claim
    assert (spoilt.text, spoilt.values) == ("I visit him there.", ())


def test_a_clause_that_does_not_stand_in_the_sentence_makes_no_claim_and_the_rest_is_kept() -> None:
    found = check(a_claim(1, clause="I live in Rome"), a_claim(2, clause="two cats"), turns=said(MESSAGE))
    assert (len(found.sound), found.refused) == (1, 1)
    assert '"clause"' in found.objections[0]


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("I moved here in 2019.", "2019", "2019-01-01"),
        ("I fly on 2024-07-12.", "2024-07-12", "2024-07-12"),
        ("I fly on 12.7.24.", "2024-07-12", "2024-07-12"),
        ("I start next month.", "2024-07", "2024-07-01"),
        ("I came in March 2016.", "2016-03", "2016-03-01"),
        ("我下周三去复查。", "2024-06-12", "2024-06-12"),
    ],
)
def test_a_date_counts_if_it_stands_in_the_quote_or_words_can_mean_it(text: str, begin: str, end: str) -> None:
    assert sound(a_claim(1, **{"from": begin}), turns=said(text)).holds_from == day(end)


@pytest.mark.parametrize(
    ("text", "when", "begin"),
    [
        ("I moved here last spring.", "last spring", "2024-03-01"),
        ("我国庆去西安。", "国庆", "2024-10-01"),
        ("I fly on the 14th.", "the 14th", "2024-06-14"),
        ("It began in the night.", "in the night", "2024-06-03"),
    ],
)
def test_words_that_no_calendar_knows_give_a_date_near_the_day_of_the_chat(text: str, when: str, begin: str) -> None:
    assert sound(a_claim(1, when=when, **{"from": begin}), turns=said(text)).holds_from == day(begin)
    for other in ({"when": "at Easter", "from": begin}, {"from": begin}, {"when": when, "from": "2027-01-01"}):
        assert check(a_claim(1, **other), turns=said(text)).doubtful[0].claim.holds_from is None


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("I fly in 2024/07.", "2024-08"),
        ("I moved here years ago.", "2012"),
        ("I start soon.", "2027-06-04"),
        ("I start soon.", "2024-02-31"),
        ("I start soon.", "9999-12-31"),
        ("I start soon.", "2024-06-04-01"),
        ("I have 19 cats.", "2019"),
        ("I start soon.", "2024-07-01"),
        ("I like this pizza.", "2024-06-01"),
        ("I have two cats.", "2024-06-04"),
        ("我喜欢喝茶。", "2024-07"),
    ],
)
def test_a_date_that_the_quote_cannot_mean_is_left_out(text: str, begin: str) -> None:
    assert check(a_claim(1, **{"from": begin}), turns=said(text)).doubtful[0].claim.holds_from is None


@pytest.mark.parametrize("begin", ["", "2024-06-05", "2027-06-04", "2024-02-31", "tomorrow"])
def test_where_the_words_are_certain_their_date_counts_and_no_other(begin: str) -> None:
    assert sound(a_claim(1, **{"from": begin}), turns=said("I start tomorrow.")).holds_from == day("2024-06-04")


@pytest.mark.parametrize(
    ("text", "when", "bounds", "held"),
    [
        ("I'm away from tomorrow until Whitsun.", "until Whitsun", ("", "2024-06-16"), ("2024-06-04", "2024-06-17")),
        ("I was ill last week.", "last week", ("2024-05-27", "2024-06-02"), ("2024-05-27", "2024-06-03")),
        ("I was ill last week.", "last week", ("", "2024-06-05"), ("2024-05-27", "")),
        ("I fly on 12.7.2024 until Advent.", "until Advent", ("", "2024-12-01"), ("2024-07-12", "2024-12-02")),
    ],
)
def test_words_that_are_certain_of_one_bound_leave_the_other_to_the_model(
    text: str, when: str, bounds: tuple[str, str], held: tuple[str, str]
) -> None:
    claim = sound(a_claim(1, when=when, until=bounds[1], **{"from": bounds[0]}), turns=said(text))
    assert (claim.holds_from, claim.holds_until) == tuple(day(one) if one else None for one in held)


def test_it_holds_to_the_end_of_the_last_day_month_or_year() -> None:
    for until, end in (("2024-07-12", "2024-07-13"), ("2024-12", "2025-01-01"), ("2024", "2025-01-01")):
        claim = sound(a_claim(1, until=until, when="until the year ends"), turns=said("I stay until the year ends."))
        assert claim.holds_until == day(end)


def test_confidence_follows_the_level_category_and_importance_the_act_and_time_and_scope_the_turn() -> None:
    assert sound(a_claim(1)).confidence > 0.7 > sound(a_claim(1, sure="low")).confidence
    assert sound(a_claim(1, sure="certainly")).confidence < 0.7  # the gate asks for more
    assert sound(a_claim(1, act="correct", category="event")).category == "correction"
    assert sound(a_claim(1, act="remember")).importance > sound(a_claim(1)).importance
    claim = sound(a_claim(2), turns=said("Hello.", "I dive."))
    assert (claim.said_at, claim.evidence.turn_id, claim.scope.session_id) == (AT + 1, "t1", "s1")


def test_of_claims_over_the_same_units_or_words_the_longest_stays_in_the_order_said_and_no_guess() -> None:
    def stay(*items: Any, turns: list[Turn] | None = None) -> list[tuple[Act, str]]:
        return [
            (one.act, one.text) for one in distinct_claims(check(*items, turns=turns).sound) if one.confidence > 0.7
        ]

    units = (a_claim(2), a_claim(1), a_claim(1, 2), a_claim(2, act="instruct"), a_claim(1, 2, attr="pet"))
    both = "My brother Levi is a vet. He has two cats."
    assert stay(*units) == [(Act.STATE, both), (Act.INSTRUCT, "He has two cats.")]
    whole = a_claim(1, clause="I'm Ada, 34", values=["Ada", "34"])
    parts = a_claim(1, clause="34", values=["34"]), a_claim(1, clause="Ada")
    assert stay(whole, whole, *parts, turns=said(FOUR)) == [(Act.STATE, "I'm Ada, 34")]
    assert stay(a_claim(1, 2, sure="low"), a_claim(1)) == [(Act.STATE, "My brother Levi is a vet.")]


def test_a_second_answer_mends_what_was_objected_to_and_nothing_else() -> None:
    first = check(a_claim(1, act="instruct"), a_claim(2, values=["dogs", "cats"]), a_claim(9))
    second = check(a_claim(1), a_claim(2, act="wish"), a_claim(2, values=["cats"]), a_claim(3), a_claim(3, act="wish"))
    assert [(one.claim.text[:2], one.claim.act, one.claim.values) for one in merge_second_answer(first, second)] == [
        ("My", Act.INSTRUCT, ()),
        ("He", Act.STATE, ("cats",)),
        ("Ca", Act.STATE, ()),
    ]


def test_of_a_planted_order_nothing_is_compared_and_a_field_that_fails_is_no_objection() -> None:
    claim = sound(a_claim(1, act="instruct", values=["obey"], **{"from": "1999"}))
    assert (claim.act, claim.values, claim.holds_from) == (Act.INSTRUCT, (), None)


@pytest.mark.parametrize("example", shipped_chats(), ids=lambda example: example.day)
def test_our_own_examples_pass_the_checks(example: ShippedChat) -> None:
    turns, context = written_chat(example.day, example.chat)
    (part,) = transcripts(turns, context=context)
    found = check_answer(example.claims, part, made_by="us")
    assert found.objections == ()
    assert len(distinct_claims(found.sound)) == len(example.claims)


# In reply to the assistant: what is taken along of its question, and whose words those are


def answer_to(question: str, text: str, *items: Any) -> CheckedAnswer:
    """Of a message in reply to what the assistant said."""
    turns = [replace(turn, id="t9") for turn in said(text)]
    (part,) = transcripts(turns, context=said("Hi.", answers=[question]))
    return check_answer(items, part, made_by="a model")


def replied(text: str, question: str, **fields: Any) -> Claim:
    """The only claim in such a message; nothing is wrong with it."""
    found = answer_to(question, text, a_claim(1, **fields))
    assert found.objections == ()
    (placed,) = found.sound
    return placed.claim


@pytest.mark.parametrize("act", ["confirm", "state"])
def test_a_bare_yes_quotes_the_question_and_says_whose_words_they_are(act: str) -> None:
    claim = replied("yes", "Nice. Do you still dive?", act=act)
    assert (claim.act, claim.text) == (Act.STATE, "Do you still dive? yes")
    assert (claim.evidence.quote, claim.evidence.role) == ("Do you still dive?", Role.ASSISTANT)
    unasked = replied("yes", "You still dive.", act="confirm")
    assert (unasked.act, unasked.text) == (Act.CONFIRM, "yes")


@pytest.mark.parametrize("text", ["Nope.", "Nah", "No.", "Nö", "不是"])
@pytest.mark.parametrize("says_no", [True, False])
def test_a_bare_no_denies_what_was_asked_whatever_the_model_says(text: str, *, says_no: bool) -> None:
    claim = replied(text, "Nice. Are you vegetarian?", no=says_no)
    assert (claim.text, claim.is_affirmed) == (f"Are you vegetarian? {text}", False)


def test_a_yes_in_more_words_states_what_the_model_makes_of_it_and_the_question() -> None:
    asked = "Are the twins both vegetarian?"
    fields = {"act": "confirm", "content": "The twins are both vegetarian"}
    claim = replied("Yes, both of them.", asked, **fields)
    assert (claim.act, claim.text, claim.question) == (Act.STATE, fields["content"], asked)
    assert replied("Yes, both of them.", asked, act="confirm").act is Act.CONFIRM


MOST = "What is it that you like most of all?"
COOK = "Since you are diabetic and vegetarian, what do you like to cook?"


@pytest.mark.parametrize(
    ("asked", "text", "content", "stated"),
    [
        (COOK, "I like making pasta.", "", "I like making pasta."),  # not completed: no question is taken along
        ("What is your budget?", "900 euros", "My budget is 900 euros", "My budget is 900 euros"),
        (MOST, "Pasta.", "I adore Zanzibar, Pasta.", f"{MOST} Pasta."),  # its words add something
        (MOST, "面条", "I adore Zanzibar, 面条", f"{MOST} 面条"),
        (COOK, "Pasta.", "I cook Zanzibar pasta", "what do you like to cook? Pasta."),  # only what it asks
    ],
)
def test_a_reply_that_the_model_completes_takes_the_question_along_or_is_marked_with_it(
    asked: str, text: str, content: str, stated: str
) -> None:
    claim = replied(text, asked, content=content)
    assert (claim.text, claim.evidence.quote) == (stated, text)
    assert claim.question == (asked[-len(claim.question) :] if content else "")
    assert bool(claim.question) is bool(content)


def test_each_sentence_of_a_reply_may_take_words_of_the_question_along() -> None:
    text, question = "At most 140 euros. Somewhere quiet. I row.", "What is your budget for the hotel?"
    words = {1: "My budget for the hotel is at most 140 euros", 2: "The hotel is somewhere quiet", 3: "I row in Rome"}
    worded = [a_claim(n, content=content) for n, content in words.items()]
    found = answer_to(f"Is it in Rome? {question}", text, *worded)
    assert [(one.claim.text, one.claim.question) for one in found.sound] == [(words[n], question) for n in (1, 2)]
    assert [one.claim.text for one in found.doubtful] == ["I row."]  # "Rome" does not stand in the question
    spoilt = answer_to(question, text, *(a_claim(n, content="I adore Zanzibar") for n in (1, 2)))
    assert [one.claim.text for one in (*spoilt.sound, *spoilt.doubtful)] == [
        f"{question} At most 140 euros.",  # nothing before it stands
        "Somewhere quiet.",
    ]
