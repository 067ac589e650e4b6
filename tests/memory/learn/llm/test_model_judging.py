"""A small model judges what rules propose: how it is asked, and what is believed of it. On a scripted real server."""

from __future__ import annotations

import json

import pytest
from scripted_model import in_turn, no, running_model, yes
from turn_logs import START, a_turn

from memory.errors import Unavailable, Unusable
from memory.learn.llm.judging import KEEP_SCHEMA, MEANING_SCHEMA
from memory.learn.llm.model_learner import Asking, JudgeLearner
from memory.learn.llm.prompting import Example
from memory.learn.statements import verbatim
from memory.learn.statements.candidates import proposals
from memory.model import Message, Scope, Turn, TurnStatus

ASKING = Asking(name="scripted", seconds=5.0)
SURE = "My sister Ana lives in Oslo."
UNSURE = "I teach chemistry at a night school."  # no name, no number: rules alone would keep it
LEFT_OUT = "The cellar floods every spring"  # nobody is in it: rules alone would leave it out
TWO_UNSURE = f"{UNSURE} We keep bees behind the shed."


def told(text: str, *, turn_id: str = "t1", at: float = START, answer: str = "Noted.") -> Turn:
    scope = Scope("ann", session_id="s1")
    return Turn(turn_id, scope, at, (Message("user", text),), status=TurnStatus.CLOSED, answer=answer)


async def test_what_rules_are_sure_of_is_kept_and_costs_no_call() -> None:
    async with running_model(keep=no) as scripted:
        facts = await JudgeLearner(scripted.model, ASKING).extract([told(SURE)], context=[])
    assert [fact.content for fact in facts] == [SURE]
    assert scripted.asked == []


@pytest.mark.parametrize("said", [UNSURE, LEFT_OUT])
async def test_of_what_rules_are_not_sure_of_the_model_says_whether_it_is_kept(said: str) -> None:
    async with running_model(keep=in_turn('{"keep":"yes"}', '{"keep":"no"}')) as scripted:
        learner = JudgeLearner(scripted.model, ASKING)
        assert [fact.content for fact in await learner.extract([told(said)], context=[])] == [said]
        assert await learner.extract([told(said)], context=[]) == []
    assert scripted.questions == [f"Person: {said}"] * 2


async def test_a_judged_fact_quotes_the_user_and_says_what_it_was_made_by() -> None:
    async with running_model() as scripted:
        (sure, judged) = await JudgeLearner(scripted.model, ASKING).extract([told(f"{SURE} {UNSURE}")], context=[])
    assert (judged.evidence.quote, judged.evidence.turn_id) == (UNSURE, "t1")
    name, version = judged.made_by.split(" ")
    assert name == "scripted"
    assert version.startswith("judge-")
    assert sure.made_by == "verbatim"  # no model had a part in it


async def test_questions_small_talk_and_stories_are_not_even_asked_about() -> None:
    said = "thanks, that works now! can you say it shorter? imagine I were a pirate with a ship full of gold"
    async with running_model(keep=yes) as scripted:
        assert await JudgeLearner(scripted.model, ASKING).extract([told(said)], context=[]) == []
    assert scripted.asked == []


async def test_each_call_carries_the_strict_schema_and_room_for_a_word_only() -> None:
    async with running_model() as scripted:
        await JudgeLearner(scripted.model, ASKING).extract([told(UNSURE)], context=[])
    (body,) = scripted.asked
    asked_for = body["response_format"]
    assert asked_for["type"] == "json_schema"
    assert asked_for["json_schema"]["strict"] is True
    assert asked_for["json_schema"]["schema"] == KEEP_SCHEMA
    assert body["max_tokens"] <= 16
    assert "priority" not in body


async def test_only_the_question_differs_between_two_calls_so_that_the_prefix_stays_cached() -> None:
    async with running_model() as scripted:
        learner = JudgeLearner(scripted.model, ASKING)
        await learner.extract([told(TWO_UNSURE)], context=[])
        await learner.extract([told(UNSURE, turn_id="t2", at=START + 90_000)], context=[])
    first, *others = [body["messages"] for body in scripted.asked]
    assert len(others) == 2
    assert all(messages[:-1] == first[:-1] for messages in others)
    shared = [{key: value for key, value in body.items() if key != "messages"} for body in scripted.asked]
    assert all(one == shared[0] for one in shared)


async def test_it_is_asked_what_a_word_points_to_and_the_users_own_words_go_behind_the_statement() -> None:
    before = told("we are going to Oslo in May")
    after = told("I love the harbour there", turn_id="t2", at=START + 60)
    async with running_model(means=lambda _: '{"means":"Oslo"}') as scripted:
        facts = await JudgeLearner(scripted.model, ASKING).extract([after], context=[before])
    assert [fact.content for fact in facts] == ["I love the harbour there (there: Oslo)"]
    assert facts[0].evidence.quote == "I love the harbour there"
    asked = next(b for b in scripted.asked if b["response_format"]["json_schema"]["schema"] == MEANING_SCHEMA)
    assert asked["messages"][-1]["content"].endswith("Last: I love the harbour there\nWord: there")


@pytest.mark.parametrize("meaning", ["Bergen", "Oslo in Norway", "there", "", "we are going to Oslo in May, all of us"])
async def test_a_meaning_that_the_user_did_not_say_so_is_left_off(meaning: str) -> None:
    before, after = told("we are going to Oslo in May"), told("I love the harbour there", turn_id="t2", at=START + 60)
    async with running_model(means=lambda _: json.dumps({"means": meaning})) as scripted:
        facts = await JudgeLearner(scripted.model, ASKING).extract([after], context=[before])
    assert [fact.content for fact in facts] == ["I love the harbour there"]


async def test_an_answer_that_is_not_the_form_is_sent_back_once_with_what_was_wrong() -> None:
    async with running_model(keep=in_turn("I would say yes!", '{"keep":"yes"}')) as scripted:
        facts = await JudgeLearner(scripted.model, ASKING).extract([told(UNSURE)], context=[])
    assert [fact.content for fact in facts] == [UNSURE]
    first, second = [body["messages"] for body in scripted.asked]
    assert second[: len(first)] == first
    assert second[len(first)] == {"role": "assistant", "content": "I would say yes!"}
    assert '{"keep":"yes"} or {"keep":"no"}' in second[-1]["content"]


@pytest.mark.parametrize("junk", ["", "yes", '{"keep":"perhaps"}', '{"keep":true}', "[]", "x" * 200_000, '{"keep"'])
async def test_junk_again_gives_the_window_up_after_two_calls(junk: str) -> None:
    async with running_model(keep=lambda _: junk) as scripted:
        with pytest.raises(Unusable, match="cannot be used") as given_up:
            await JudgeLearner(scripted.model, ASKING).extract([told(UNSURE)], context=[])
    assert given_up.value.part == "model"
    assert UNSURE not in str(given_up.value)
    assert len(scripted.asked) == 2
    assert sum(len(m["content"]) for m in scripted.asked[-1]["messages"]) < 20_000  # what ran wild is not sent whole


async def test_a_server_that_is_down_or_slow_is_the_models_unavailability() -> None:
    async with running_model() as scripted:
        scripted.server.status = 503
        with pytest.raises(Unavailable, match="model"):
            await JudgeLearner(scripted.model, ASKING).extract([told(UNSURE)], context=[])
        scripted.server.status, scripted.server.seconds = 200, 5.0
        with pytest.raises(Unavailable, match=r"within 0\.1 s"):
            await JudgeLearner(scripted.model, Asking("scripted", seconds=0.1)).extract([told(UNSURE)], context=[])


async def test_past_the_questions_of_a_window_rules_decide_alone() -> None:
    window = [told(TWO_UNSURE), told(LEFT_OUT, turn_id="t2", at=START + 5)]
    async with running_model(keep=no) as scripted:
        facts = await JudgeLearner(scripted.model, Asking("scripted", questions_max=1)).extract(window, context=[])
    assert scripted.questions == [f"Person: {UNSURE}"]
    assert [fact.content for fact in facts] == ["We keep bees behind the shed."]


async def test_topics_and_own_examples_stand_in_the_prompt_and_change_its_version() -> None:
    own = Example(said="the boiler is a Vaillant", keep=True, before="Which boiler?")
    asking = Asking("scripted", topics=("boilers", "tariffs"), examples=(own,))
    async with running_model() as scripted:
        (plain,) = await JudgeLearner(scripted.model, ASKING).extract([told(UNSURE)], context=[])
        (steered,) = await JudgeLearner(scripted.model, asking).extract([told(UNSURE)], context=[])
    ours, theirs = [body["messages"] for body in scripted.asked]
    assert "boilers; tariffs" in theirs[0]["content"]
    assert theirs[-3:-1] == [
        {"role": "user", "content": "Assistant: Which boiler?\nPerson: the boiler is a Vaillant"},
        {"role": "assistant", "content": '{"keep":"yes"}'},
    ]
    assert theirs[1:-3] == ours[1:-1]
    assert plain.made_by != steered.made_by


async def test_what_the_assistant_said_is_shown_and_never_quoted() -> None:
    before = told("hi", answer="You teach biology in Bonn, I believe. Tell me more!")
    async with running_model() as scripted:
        facts = await JudgeLearner(scripted.model, ASKING).extract([told(UNSURE, turn_id="t2")], context=[before])
    assert scripted.questions[0].startswith("Assistant: You teach biology in Bonn")
    assert [(fact.content, fact.evidence.role) for fact in facts] == [(UNSURE, "user")]


def test_the_statements_here_are_what_they_are_taken_for() -> None:
    assert [fact.content for fact in verbatim.extract([told(f"{SURE} {UNSURE}")])] == [SURE, UNSURE]
    assert verbatim.extract([told(LEFT_OUT)]) == []


def test_lines_of_a_text_that_is_asked_about_are_not_proposed() -> None:
    lines = ["rate this", "", "Norah Finch. 4 years of accounts in Leeds.", "The office is run by Odile Marr."]
    assert proposals([a_turn("t", text="\n".join(lines))], context=()) == []
    beside_a_request = "The van from Leeds stalled again at 7. How do I clean it?"
    assert [one.is_kept for one in proposals([a_turn("t", text=beside_a_request)], context=())] == [False]
