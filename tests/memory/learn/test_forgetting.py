"""Forgetting is closed: only what a sure request names goes, and only what was said before it; from summaries, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from claims import NOW, claim, turn
from learning_parts import Bench, Faults
from memory_rows import memory
from plain_reader import FramingReader
from turn_logs import START, Process, a_turn

from memory.learn.closeness import UNKNOWN, Closeness
from memory.learn.forgetting import (
    ForgetMatches,
    ForgetRequest,
    forgotten_later,
    lasting,
    matching_ids,
    outcomes_of,
    requests_of,
    similar_ids,
    withheld_claims,
    without_words_of,
)
from memory.learn.worker import WorkerSettings
from memory.model import Act, Evidence, Memory, MemoryStatus, Relation, SessionSummary, TurnStatus
from memory.ports import OrderReach


def asked(text: str, reach: OrderReach = OrderReach.TOPIC, *, receipt_id: str = "", **fields: Any) -> ForgetRequest:
    order = claim(text, act=Act.FORGET, **fields)
    (request,) = requests_of([order], [turn(text, receipt_id=receipt_id)], {text: reach})
    return request


def known(content: str, *, said_at: float = NOW - 9, turn_id: str = "t0", **fields: Any) -> Memory:
    return memory(content, content, at=said_at, evidence=(Evidence(content, turn_id),), **fields)


HOME = known("I live at 4 Mill Lane", attribute="home", values=("4 Mill Lane",))
SISTERS_HOME = known("My sister lives in Oslo", attribute="home", values=("Oslo",), subject="sibling")
KNEE = known("I tore my left knee while skiing", attribute="health")
JOB = known("I am a welder at Baxter", attribute="occupation", values=("welder",))
ALL = [HOME, SISTERS_HOME, KNEE, JOB]
OF_A_SISTER = {"attribute": "home", "relation": Relation.SIBLING}


def like(request: ForgetRequest, likeness: dict[str, float], *over: Memory) -> Closeness:
    """Texts of these cosines to the request, what is `over` with it for the reader, and others that are rather not."""
    rows = {text: np.array([one, (1 - one**2) ** 0.5]) for text, one in likeness.items()}
    vectors = {request.claim.text: np.array([1.0, 0.0]), **rows}
    odds = dict.fromkeys(likeness, -1.5) | {one.content: 4.0 for one in over}
    return Closeness(vectors, {(text, request.claim.text): one for text, one in odds.items()})


@pytest.mark.parametrize(
    ("fields", "likeness", "over", "expected"),
    [
        ({}, {HOME.content: 0.2}, [HOME], [HOME]),  # nothing but what the reader says of the two
        ({}, {KNEE.content: 0.7}, [], [KNEE]),  # nothing but the meaning
        (OF_A_SISTER, {SISTERS_HOME.content: 0.6, HOME.content: 0.3}, [], [SISTERS_HOME]),
        ({"values": ("welder",)}, {JOB.content: 0.55}, [], [JOB]),
        ({"attribute": "body"}, {HOME.content: 0.15, KNEE.content: 0.25}, [], []),
        ({"attribute": "health", "values": ("asthma",)}, {KNEE.content: 0.25}, [], []),
        ({}, {HOME.content: 0.6, SISTERS_HOME.content: 0.6}, [HOME], [HOME]),  # a near twin of what is meant
    ],
)
def test_what_a_request_means_goes_and_nothing_else(
    fields: dict[str, Any], likeness: dict[str, float], over: list[Memory], expected: list[Memory]
) -> None:
    request = asked("Weg damit", **fields)
    vectors = like(request, {memory.content: 0.05 for memory in ALL} | likeness, *over)
    assert matching_ids(request, ALL, [request.turn], vectors) == [memory.id for memory in expected]


def test_what_a_meant_memory_superseded_goes_with_it() -> None:
    old = replace(HOME, id="old", status=MemoryStatus.SUPERSEDED, superseded_by=HOME.id, said_at=NOW - 20)
    request = asked("forget my address", attribute="home")
    close = like(request, {HOME.content: 0.4}, HOME)
    assert matching_ids(request, [old, HOME], [request.turn], close) == ["old", HOME.id]


def test_a_request_reaches_back_never_forward_and_one_of_which_the_reader_is_not_sure_is_none() -> None:
    request, later = asked("forget my address", attribute="home"), replace(HOME, said_at=NOW + 1)
    assert matching_ids(request, [later], [request.turn], like(request, {HOME.content: 0.9})) == []
    assert requests_of([replace(request.claim, confidence=0.6)], [request.turn]) == []


def test_what_i_just_said_means_the_turn_before() -> None:
    request = asked("Forget what I just said", OrderReach.PREVIOUS)
    before = turn("I live at 4 Mill Lane", turn_id="t0", at=NOW - 9)
    assert matching_ids(request, [HOME, known("I like tea", turn_id="t-1")], [before, request.turn]) == [HOME.id]


def test_all_that_is_known_of_somebody_is_never_everything() -> None:
    request = asked("Forget all you know", OrderReach.EVERYTHING, relation=Relation.SIBLING)
    assert (request.reach, asked("All of Tom", OrderReach.EVERYTHING, name="Tom").topic) == (
        OrderReach.WHOLE,
        "All of Tom",
    )


def test_what_stands_behind_an_order_and_only_points_at_it_asks_for_nothing_more() -> None:
    order, why = claim("Forget my address.", act=Act.FORGET), claim("It was private.", act=Act.FORGET)
    said = [turn("I have a cat", turn_id="t0", at=NOW - 9), turn("Forget my address. It was private.")]
    found = requests_of([order, why], said, {why.text: OrderReach.PREVIOUS}, said=[order, why])
    assert [one.claim for one in found] == [order]
    assert len(requests_of([why], said, {why.text: OrderReach.PREVIOUS}, said=[why])) == 1


def test_an_order_that_is_taken_back_in_its_turn_counts_for_nothing() -> None:
    said = turn("Forget my age. Forget my home. No, keep it.")
    age, home, keep = (claim(text, act=Act.FORGET) for text in ("Forget my age.", "Forget my home.", "No, keep it."))
    both = replace(home, evidence=replace(age.evidence, quote="Forget my home."))
    assert [one.claim for one in requests_of([both, home, keep], [said], {keep.text: OrderReach.REVOKED})] == [keep]
    age_only, nothing = requests_of([age, home, keep], [said], {keep.text: OrderReach.REVOKED})
    assert (age_only.claim, nothing.claim) == (age, keep)
    assert matching_ids(nothing, ALL, [said]) == []


def test_what_is_not_to_be_stored_and_then_is_after_all_is_not_withheld() -> None:
    said = turn("I row. Do not store that. Or do.")
    order, keep = (claim(text, act=Act.WITHHOLD) for text in ("Do not store that.", "Or do."))
    reaches = {order.text: OrderReach.PREVIOUS, keep.text: OrderReach.REVOKED}
    assert requests_of([order, keep], [said], reaches, said=[claim("I row."), order, keep]) == []


def test_that_behind_a_statement_means_the_statement_and_not_the_turn_before() -> None:
    order, tea, owes = (
        claim("Forget that.", act=Act.FORGET),
        claim("I like tea."),
        claim("My brother owes me 400 euros."),
    )
    turns = [turn("I have a cat", turn_id="t0", at=NOW - 9), turn(f"{tea.text} {owes.text} {order.text}")]
    (request,) = requests_of([order], turns, {order.text: OrderReach.PREVIOUS}, said=[tea, owes, order])
    assert withheld_claims([claim("I have a cat", turn="t0"), tea, owes], [request], turns, UNKNOWN) == {owes}
    assert matching_ids(request, [known("I have a cat")], turns) == []


def test_what_comes_close_stays_and_the_receipt_says_what_did_and_what_went() -> None:
    white = known("I like white wine", attribute="drink", values=("white wine",))
    request = asked("Forget that I like red wine.", values=("red wine",), receipt_id="r1")
    vectors = like(request, {white.content: 0.4})
    assert matching_ids(request, [white], [request.turn], vectors) == []
    ids = similar_ids(request, [white], vectors)
    assert ids == [white.id]
    nothing = {"forgot": [], "count": 0, "reason": "nothing_matched"}
    assert outcomes_of([request], {0: ForgetMatches((), ids)}) == {"r1": {**nothing, "similar": ids}}
    assert outcomes_of([request], {0: ForgetMatches(["m1"])}) == {"r1": {"forgot": ["m1"], "count": 1}}
    assert outcomes_of([request], {}) == {"r1": nothing}
    everything = asked("Forget everything you know about me", OrderReach.EVERYTHING)
    assert similar_ids(everything, [white], like(everything, {white.content: 0.9})) == []


def test_an_order_not_to_store_what_is_known_forgets_it_too() -> None:
    blood = known("My blood type is AB negative.", attribute="health")
    order = claim("Don't store my blood type.", act=Act.WITHHOLD, attribute="health")
    withheld, topic = requests_of([order], [turn(order.text)])
    assert (withheld.reach, topic.reach) == (OrderReach.MESSAGE, OrderReach.TOPIC)
    assert matching_ids(topic, [blood], [topic.turn], like(topic, {blood.content: 0.5})) == [blood.id]
    assert matching_ids(withheld, [blood], [withheld.turn], like(withheld, {blood.content: 0.5})) == []


def test_an_order_not_to_store_that_is_the_whole_message_means_what_its_clause_names() -> None:
    def ordered(text: str, clause: str) -> list[tuple[OrderReach, str]]:
        order = claim(text, act=Act.WITHHOLD)
        order = replace(order, text=clause, evidence=replace(order.evidence, clause=clause))
        reaches = {clause: OrderReach.PREVIOUS} if clause.endswith("that") else {}
        return [(one.reach, one.topic) for one in requests_of([order], [turn(text)], reaches)]

    message = (OrderReach.MESSAGE, "")
    known = ordered("I'd rather you didn't remember that I have asthma.", "I have asthma")
    assert known == [message, (OrderReach.TOPIC, "I have asthma")]
    assert ordered("I have asthma, please don't store that.", "please don't store that") == [message]


def test_what_is_withheld_does_not_stay_in_what_took_its_words_along_or_its_value_for_a_pronoun() -> None:
    gone, kept = claim("I have asthma."), claim("I have asthma. It makes me tired.", quote="It makes me tired.")
    assert [one.text for one in without_words_of([gone], [kept])] == ["It makes me tired."]
    gone, said = claim("My brother Levi lives in Tallinn.", values=("Tallinn",)), "I visit him there in May."
    kept = claim("I visit Levi in Tallinn in May", name="Levi", values=("Tallinn", "May"), quote=said)
    (left,) = without_words_of([gone], [kept])
    assert (left.text, left.name, left.values) == (said, "", ("May",))
    (whole,) = without_words_of([replace(gone, values=("Riga",))], [kept])
    assert whole == kept


def test_a_withheld_message_teaches_nothing_but_what_is_asked_to_be_remembered_behind_the_order_and_others_do() -> None:
    said = turn("Remember that I row. Don't store my number, it is 5. Remember that I live in Oslo. I like tea.")
    requests = requests_of([claim("Don't store my number, it is 5.", act=Act.WITHHOLD)], [said])
    before, oslo = (claim(f"Remember that I {does}.", act=Act.REMEMBER) for does in ("row", "live in Oslo"))
    tea, other = claim("I like tea."), claim("I have a cat", turn="t0")
    turns = [turn("I have a cat", turn_id="t0", at=NOW - 9), said]
    assert withheld_claims([before, oslo, tea, other], requests, turns, UNKNOWN) == {before, tea}


def test_a_new_value_behind_a_request_is_learnt() -> None:
    said = turn("Forget my old address. I live in Oslo now.")
    requests = requests_of([claim("Forget my old address.", act=Act.FORGET)], [said])
    assert not withheld_claims([claim("I live in Oslo now.", attribute="home")], requests, [said], UNKNOWN)


def test_what_is_learnt_late_heeds_a_request_that_was_made_after_it() -> None:
    later = lasting([asked("forget my address", attribute="home")])
    oslo = known("I live in Oslo")
    vectors = like(later[0], {HOME.content: 0.3, oslo.content: 0.3, SISTERS_HOME.content: 0.1}, HOME, oslo)
    assert forgotten_later(later, [HOME], vectors)
    assert forgotten_later(later, [claim("I live in Oslo", attribute="home", said_at=NOW - 1)], vectors)
    assert not forgotten_later(later, [claim("I live in Oslo", attribute="home", said_at=NOW + 1)], vectors)
    assert not forgotten_later(later, [SISTERS_HOME], vectors)


def test_what_is_learnt_late_is_judged_beside_the_rest_of_its_window() -> None:
    request = asked("forget Mr Meer")
    berg, meer = known("My physio is Mr Berg"), known("My landlord is Mr Meer")
    close = like(request, {berg.content: 0.55, meer.content: 0.9}, meer)
    assert forgotten_later([request], [berg, meer], close) == {1}
    assert forgotten_later([request], [berg], close) == {0}


def test_a_request_within_a_project_touches_that_project_alone() -> None:
    said = turn("forget my address")
    said = replace(said, scope=replace(said.scope, project_id="p"))
    (request,) = requests_of([claim("forget my address", act=Act.FORGET, project="p", attribute="home")], [said])
    vectors = like(request, {HOME.content: 0.3}, HOME)
    assert forgotten_later([request], [replace(HOME, project_id="p")], vectors)
    assert not forgotten_later([request], [HOME], vectors)
    assert not forgotten_later([request], [replace(HOME, project_id="q")], vectors)
    anywhere = asked("forget my address", attribute="home")  # made outside of any: in all
    assert forgotten_later([anywhere], [replace(HOME, project_id="p")], vectors)


# A request in a chat to forget or to withhold something also reaches the summaries of sessions

LATER = START + 1e6


async def in_summaries(process: Process) -> dict[str, list[str]]:
    """What the next summary of each session is made from."""
    found = {}
    while due := await process.summaries.due(now=LATER, idle_seconds=0, limit=9):
        for session in due:
            turns = await process.summaries.turns(session, limit=9)
            found[session.session_id] = [message.content for turn in turns for message in turn.messages]
            await process.summaries.put(session, None, None)
    return found


async def summarise(process: Process) -> None:
    while due := await process.summaries.due(now=LATER, idle_seconds=0, limit=9):
        for one in due:
            made = SessionSummary(one.user_id, one.session_id, 1, "A title", "", START, START, (), series=one.series)
            await process.summaries.put(one, made, None)


async def test_what_a_topic_names_and_the_request_itself_are_left_out(bench: Bench, process: Process) -> None:
    await bench.learn(process, "My locker number is 42.", "I live in Leeds.")
    await summarise(process)
    await bench.learn(process, "Forget my locker number is 42.", session="s2")
    assert await process.summaries.of_session("ann", "s1") is None
    assert await in_summaries(process) == {"s1": ["I live in Leeds."], "s2": []}


ORDERS = {
    "what was said right before, though no memory holds it": ["The weather is dull today", "Forget what I just said."],
    "a withheld message": ["My brother owes me 400 euros. Do not store that."],
    "a claim that was only withheld": ["My locker number is 9876.", "Forget my locker number."],
    "all behind an order to stop": ["Don't remember anything again. I like tea.", "I row.", "The weather is dull"],
}


@pytest.mark.parametrize("said", ORDERS.values(), ids=ORDERS)
async def test_what_an_order_in_its_window_means_is_left_out(bench: Bench, process: Process, said: list[str]) -> None:
    """Where neither a memory nor a row of raw words ever existed."""
    await bench.learn(process, "I live in Leeds.", *said)
    assert await bench.contents() == ["I live in Leeds."]
    assert await in_summaries(process) == {"s1": ["I live in Leeds."]}


async def test_forget_everything_leaves_out_all_that_its_project_said_before(bench: Bench, process: Process) -> None:
    await bench.learn(process, "I live in Leeds.", "The weather is dull today")
    await bench.learn(process, "My budget is 400 euros.", session="s2", project="atlas")
    await summarise(process)
    await bench.learn(process, "Forget everything about me.", session="s3", project="atlas")
    assert await process.summaries.of_session("ann", "s2") is None
    assert (await in_summaries(process))["s2"] == []
    await bench.learn(process, "Forget everything about me.", session="s3")
    assert set(map(tuple, (await in_summaries(process)).values())) == {()}
    await bench.learn(process, "I moved to York.", session="s1")
    assert (await in_summaries(process))["s1"] == ["I moved to York."]


async def test_a_filled_in_request_withholds_what_its_window_said_before(bench: Bench, process: Process) -> None:
    said = ("My locker number is 9876.", "Forget what I just said.", "I live in Leeds.")
    await bench.learn(process, *said, status=TurnStatus.FILLED_IN)
    assert await bench.contents() == ["I live in Leeds."]
    assert await in_summaries(process) == {"s1": ["I live in Leeds."]}


async def test_a_missed_turn_from_before_forget_everything_is_left_out(bench: Bench, process: Process) -> None:
    await bench.learn(process, "I live in Leeds.", "Forget everything about me.")
    for number, text in enumerate(("The weather is dull today", "My locker number is 9876.")):
        turn = a_turn(f"f{number}", text=text, session="s2", status=TurnStatus.FILLED_IN, at=START - 5)
        await process.log.append(turn)
    await bench.learn(process, "I moved to York.", session="s2")
    assert await in_summaries(process) == {"s1": [], "s2": ["I moved to York."]}


@pytest.mark.parametrize("has_plan", [False, True])
@pytest.mark.parametrize("request_", ["Forget my locker number.", "Forget everything about me."])
async def test_a_window_that_is_replayed_after_a_request(bench: Bench, request_: str, *, has_plan: bool) -> None:
    """Whether it was read again or had a plan already. Before, none of it is in a summary."""
    async with bench.deployment.start() as process:
        await bench.tell(process, "My locker number is 9876.", "And what about the zebra?")
        name = "acknowledge" if has_plan else "context"
        faults = Faults(name=name, error=RuntimeError("a test"))
        await bench.worker(process, faults=faults, settings=WorkerSettings(attempts_max=1)).work_off()
        (dead,) = await process.log.dead_letters(limit=9)
        await bench.learn(process, request_, session="s2")
        assert await in_summaries(process) == {"s1": [], "s2": []}
        await process.log.replay([dead.window_id])
        await bench.learn(process, "I moved to York.")
        assert (await in_summaries(process))["s1"] == ["I moved to York."]


async def test_a_topic_reaches_what_was_never_a_memory_in_any_session(bench: Bench, process: Process) -> None:
    await bench.learn(process, "Where is the zebra of Nils?", "Is it late?", session="s1")
    await bench.learn(process, "Is the zebra of Nils old?", session="s2", project="atlas")
    await bench.learn(process, "Does the zebra eat?", session="s3")
    await summarise(process)
    await bench.learn(process, "Forget the zebra of Nils.", session="s4")
    assert await process.summaries.of_session("ann", "s3") is not None
    assert await in_summaries(process) == {"s1": ["Is it late?"], "s2": [], "s4": []}


async def test_what_repeats_a_forgotten_memory_in_other_words_is_left_out(bench: Bench, process: Process) -> None:
    await bench.learn(process, "I live in Leeds.", "I like tea.")
    await bench.learn(process, "Leeds is where I live, is it far?", session="s2")
    await bench.learn(process, "Is Leeds far?", session="s3")
    await bench.learn(process, "Forget where I live.", session="s4")
    found = await in_summaries(process)
    assert (found["s1"], found["s2"]) == (["I like tea."], [])


async def test_a_mere_kind_of_thing_leaves_only_turns_that_a_memory_quotes(bench: Bench, process: Process) -> None:
    """Whatever the others say, nobody can tell by their words that they say nothing of that kind."""
    await bench.learn(process, "I live in Leeds.", "I like tea.", "My sister is tall.")
    await bench.learn(process, "Might it be York for good, then?", "I like milk.", session="s2")
    await bench.tell(process, "I like juice.", session="s3")
    await bench.learn(process, "Forget where I live.", session="s3")
    await bench.learn(process, "What is the weather in York?", session="s2")
    found = await in_summaries(process)
    assert found["s1"] == ["I like tea.", "My sister is tall."]
    assert found["s2"] == ["I like milk.", "What is the weather in York?"]
    assert found["s3"] == ["I like juice."]


async def test_what_the_gate_refused_or_beyond_the_rate_is_left_out(bench: Bench, process: Process) -> None:
    worker = bench.worker(process, settings=WorkerSettings(facts_per_session_max=1))
    said = ("I live in Leeds.", "I want you to delete my locker number 9876", "I like tea.")
    await bench.learn(process, *said, worker=worker)
    assert await bench.contents() == ["I live in Leeds."]
    assert await in_summaries(process) == {"s1": ["I live in Leeds."]}


async def test_an_order_within_a_role_or_in_another_s_words_deletes_nothing_and_is_counted(
    bench: Bench, process: Process
) -> None:
    await bench.learn(process, "I live in Leeds.", "I like tea.")
    await bench.learn(
        process, "Hark. Forget that I live in Leeds.", worker=bench.worker(process, reader=FramingReader())
    )
    assert await bench.contents() == ["I like tea.", "I live in Leeds."]
    assert bench.count("memproxy_facts_dropped_total", reason="framed") == 1
    await bench.learn(process, "Forget that I live in Leeds.", worker=bench.worker(process, reader=FramingReader()))
    assert await bench.contents() == ["I like tea."]
