"""A model's answers are stored as they come: a repeat asks only what is missing, and a bad answer costs only itself."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from chat_server import FakeModelServer
from learning_parts import Bench, Faults, Killed
from scripted_model import Answer, ScriptedModel, different, in_turn, running_model, yes
from turn_logs import Process, a_turn

from memory.learn.extraction import VerbatimLearner
from memory.learn.llm import extracted
from memory.learn.llm.heard import Heard
from memory.learn.llm.model_learner import SILENT_QUESTIONS_MAX, Asking, JudgeLearner, ModelArbiter
from memory.learn.llm.prompting import Prompt
from memory.learn.statements import verbatim
from memory.learn.worker import WorkerSettings
from memory.model import MemoryStatus
from memory.ports import LearnDue

ASKING = Asking("scripted", seconds=5.0)
SURE = "My sister Ana lives in Oslo."
SCHOOL = "I teach chemistry at a night school."  # rules alone would keep it, and are not sure
BEES = "We keep bees behind the shed."  # likewise
CELLAR = "The cellar floods every spring."  # rules alone would leave it out
ALL = f"{SURE} {SCHOOL} {BEES} {CELLAR}"
JUNK = "As a language model I cannot say."
OLD_DOSE, NEW_DOSE = (
    "I take metformin, 500 mg twice a day.",
    "I take 1000 mg of metformin twice a day.",
)  # rules leave it open


def answering(known: dict[str, str], otherwise: str = '{"keep":"yes"}') -> Answer:
    """By what the question is about; what is sent back to be mended is not about anything."""
    return lambda question: next((said for text, said in known.items() if text in question), otherwise)


class Strict:
    """Junk whenever it is asked about one statement, also when told what was wrong."""

    def __init__(self, about: str) -> None:
        self._about = about
        self._is_junk = False

    def __call__(self, question: str) -> str:
        if not question.startswith("Not so"):
            self._is_junk = self._about in question
        return JUNK if self._is_junk else '{"keep":"yes"}'


async def work(bench: Bench, process: Process, scripted: ScriptedModel, *, faults: Faults | None = None) -> None:
    learner = JudgeLearner(scripted.model, ASKING, metrics=bench.metrics)
    arbiter = ModelArbiter(scripted.model, ASKING, pairs_max=4, metrics=bench.metrics)
    settings = WorkerSettings(attempts_max=3)
    await bench.worker(process, faults=faults, learner=learner, arbiter=arbiter, settings=settings).work_off()
    bench.deployment.clock.now += 1_000


def asked_about(scripted: ScriptedModel) -> list[str]:
    return [question.removeprefix("Person: ") for question in scripted.questions if question.startswith("Person:")]


def falls_silent_after(server: FakeModelServer, answers: int) -> None:
    """From then on it refuses everybody."""
    says = server.says
    assert says is not None
    left = [answers]

    def fewer(body: dict[str, object]) -> str:
        left[0] -= 1
        server.status = 503 if left[0] < 0 else 200
        return says(body)

    server.says = fewer


@pytest.mark.parametrize("answers", [0, 1, 2])
async def test_after_an_outage_in_the_middle_only_what_is_missing_is_asked(bench: Bench, answers: int) -> None:
    async with running_model(keep=yes) as scripted:
        async with bench.deployment.start() as process:
            says = scripted.server.says
            falls_silent_after(scripted.server, answers)
            await bench.tell(process, ALL)
            await work(bench, process, scripted)
            assert await bench.contents() == []
        scripted.server.asked.clear()
        scripted.server.says, scripted.server.status = says, 200
        async with bench.deployment.start() as another:
            await work(bench, another, scripted)
    assert asked_about(scripted) == [SCHOOL, BEES, CELLAR][answers:]
    assert await bench.contents() == sorted([SURE, SCHOOL, BEES, CELLAR])


async def test_a_crash_after_any_answer_leaves_it_told(bench: Bench) -> None:
    async with running_model(keep=yes) as scripted:
        for answers in (1, 2, 3):
            async with bench.deployment.start() as process:
                if answers == 1:
                    await bench.tell(process, ALL)
                with pytest.raises(Killed):
                    await work(bench, process, scripted, faults=Faults(name="save_plan", error=Killed(), is_after=True))
                bench.deployment.clock.now += 1_000
            assert len(asked_about(scripted)) == answers
        async with bench.deployment.start() as process:
            await work(bench, process, scripted)
    assert asked_about(scripted) == [SCHOOL, BEES, CELLAR]
    assert await bench.contents() == sorted([SURE, SCHOOL, BEES, CELLAR])


async def test_an_answer_that_was_no_stays_no_at_the_repeat(bench: Bench) -> None:
    keep = answering({SCHOOL: '{"keep":"no"}'})
    async with running_model(keep=keep) as scripted, bench.deployment.start() as process:
        await bench.tell(process, ALL)
        with pytest.raises(Killed):
            await work(bench, process, scripted, faults=Faults(name="lock", error=Killed()))
        bench.deployment.clock.now += 1_000
        scripted.server.says, scripted.server.content = None, '{"keep":"yes"}'
        await work(bench, process, scripted)
    assert await bench.contents() == sorted([SURE, BEES, CELLAR])


@pytest.mark.parametrize(("about", "is_kept"), [(SCHOOL, True), (BEES, True), (CELLAR, False)])
async def test_an_answer_that_cannot_be_read_leaves_that_statement_to_the_rules_and_the_rest_goes_on(
    bench: Bench, about: str, *, is_kept: bool
) -> None:
    async with running_model(keep=Strict(about)) as scripted, bench.deployment.start() as process:
        await bench.tell(process, ALL)
        await work(bench, process, scripted)
        assert (await process.log.backlog("ann", opened_before=1e12)).pending == 0
    assert await bench.contents() == sorted({SURE, SCHOOL, BEES, CELLAR} - (set() if is_kept else {about}))
    assert len(scripted.asked) == 4  # one of them twice
    assert bench.count("memproxy_model_shortfalls_total", of="statement") == 1
    made_by = {memory.content: memory.made_by for memory in await bench.memories()}
    assert made_by.get(about, "verbatim") == "verbatim"
    assert made_by[BEES if about == SCHOOL else SCHOOL].startswith("scripted judge-")


async def test_a_request_that_the_server_answers_with_nothing_of_use_costs_only_itself(bench: Bench) -> None:
    async with running_model(keep=yes) as scripted, bench.deployment.start() as process:
        says = scripted.server.says
        assert says is not None
        scripted.server.says = lambda body: None if BEES in body["messages"][-1]["content"] else says(body)  # type: ignore[assignment,return-value]
        await bench.tell(process, ALL)
        await work(bench, process, scripted)
    assert await bench.contents() == sorted([SURE, SCHOOL, BEES, CELLAR])
    assert bench.count("memproxy_model_shortfalls_total", of="statement") == 1


async def test_what_a_word_points_to_is_left_open_where_the_answer_cannot_be_read(bench: Bench) -> None:
    async with running_model(means=lambda _: JUNK) as scripted, bench.deployment.start() as process:
        await bench.tell(process, "we are going to Oslo in May")
        await bench.tell(process, "I love the harbour there")
        await work(bench, process, scripted)
    assert "I love the harbour there" in await bench.contents()
    assert bench.count("memproxy_model_shortfalls_total", of="meaning") == 1


async def test_a_model_that_says_nothing_of_use_at_all_has_the_window_tried_again_then_buried(bench: Bench) -> None:
    async with running_model(keep=lambda _: JUNK) as scripted, bench.deployment.start() as process:
        await bench.tell(process, f"{ALL} I play the cello in a quartet. I grow tomatoes on the balcony.")
        for _ in range(3):
            await work(bench, process, scripted)
        (letter,) = await process.log.dead_letters(limit=5)
        assert (letter.attempts, "cannot be used" in letter.reason) == (3, True)
        assert len(scripted.asked) == 3 * 2 * SILENT_QUESTIONS_MAX  # not one call for each of many statements
        scripted.server.says, scripted.server.content = None, '{"keep":"yes"}'
        await process.log.replay([])
        await work(bench, process, scripted)
    assert len(await bench.contents()) == 6


async def told_of_doses(bench: Bench, process: Process, scripted: ScriptedModel, faults: Faults) -> None:
    """The dose has changed, no word of it says so, and the worker is broken off by the faults."""
    await bench.tell(process, OLD_DOSE, session="before")
    await work(bench, process, scripted)
    scripted.server.asked.clear()
    await bench.tell(process, NEW_DOSE, session="after")
    with pytest.raises(Killed):
        await work(bench, process, scripted, faults=faults)
    bench.deployment.clock.now += 1_000


async def test_what_was_said_of_a_pair_is_not_asked_again(bench: Bench) -> None:
    bears = in_turn('{"is":"changes"}', '{"is":"different"}')
    async with running_model(bears=bears) as scripted, bench.deployment.start() as process:
        await told_of_doses(bench, process, scripted, Faults(name="lock", error=Killed()))
        assert await bench.contents() == [OLD_DOSE]
        await work(bench, process, scripted)
    assert len(scripted.asked) == 1
    assert [m.content for m in await bench.memories(status=MemoryStatus.ACTIVE)] == [NEW_DOSE]


async def test_only_a_pair_of_which_one_was_written_anew_is_asked_about_again(bench: Bench) -> None:
    async with running_model(bears=different) as scripted, bench.deployment.start() as process:
        for number, text in enumerate((OLD_DOSE, "My gym is on Mill Street.")):
            await bench.tell(process, text, session=f"s{number}")
        await bench.worker(process, learner=VerbatimLearner()).work_off()
        await bench.worker(process, learner=VerbatimLearner()).work_off()
        known = await bench.memories()
        told = [NEW_DOSE, "My gym is by the station."]
        facts = [verbatim.extract([a_turn(text, at=known[-1].said_at + 10, text=text)])[0] for text in told]
        arbiter, heard = ModelArbiter(scripted.model, ASKING, pairs_max=4), Heard()
        for _ in range(2):
            await arbiter.changed(facts, known, heard=heard)
        first = list(scripted.questions)
        known = [replace(one, content=one.content.replace("500", "850")) for one in known]
        await arbiter.changed(facts, known, heard=heard)
    assert len(first) == len(known) == 2
    assert scripted.questions[len(first) :] == [f"Older: {OLD_DOSE.replace('500', '850')}\nNewer: {NEW_DOSE}"]


async def test_a_pair_without_an_answer_stays_two_where_the_model_answered_other_questions(bench: Bench) -> None:
    async with running_model(bears=lambda _: JUNK) as scripted, bench.deployment.start() as process:
        await bench.tell(process, OLD_DOSE, session="before")
        await work(bench, process, scripted)
        await bench.tell(process, f"{NEW_DOSE} {SCHOOL}", session="after")
        await work(bench, process, scripted)
    active = {memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE)}
    assert any("Older" in question for question in scripted.questions)
    assert active == {OLD_DOSE, NEW_DOSE, SCHOOL}
    assert bench.count("memproxy_model_shortfalls_total", of="pair") == 1


async def test_what_is_stored_while_it_is_asked_is_no_plan_and_no_facts(bench: Bench) -> None:
    async with running_model(keep=yes) as scripted, bench.deployment.start() as process:
        await bench.tell(process, ALL)
        with pytest.raises(Killed):
            await work(bench, process, scripted, faults=Faults(name="save_plan", error=Killed(), is_after=True))
        lease = await process.log.lease(now=bench.deployment.clock() + 1_000, seconds=1, due=LearnDue())
        assert lease is not None
        assert extracted.is_extraction(lease.plan)
        assert lease.plan is not None
        assert (extracted.decode(lease.plan), list(extracted.answers_of(lease.plan).values())) == (
            None,
            ['{"keep":"yes"}'],
        )


async def test_what_an_older_release_extracted_is_taken_as_it_was() -> None:
    heard = Heard(b'{"stage":"extracted","version":1,"facts":[]}')
    assert (heard.facts, heard.is_silent) == ([], True)


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"answers":{"a":"b"}}',
        b'{"stage":"extracted","answers":[1]}',
        b'{"version":3,"answers":{"a":"b"}}',
    ],
)
async def test_answers_that_are_damaged_or_part_of_something_else_are_asked_for_again(stored: bytes) -> None:
    heard = Heard(stored)
    assert (heard.facts, heard.is_silent) == (None, True)


async def test_an_answer_belongs_to_the_very_words_and_prompt_that_were_asked() -> None:
    kept: list[bytes] = []

    async def keep(stored: bytes) -> None:
        kept.append(stored)

    await Heard(store=keep).note(Prompt("v1", ()), "half \ud83d of it?", "yes \ud83d")
    again = Heard(kept[-1])
    assert again.answer(Prompt("v1", ()), "half \ud83d of it?") == "yes \ud83d"
    assert again.answer(Prompt("v2", ()), "half \ud83d of it?") is None
    assert again.answer(Prompt("v1", ()), "all of it?") is None
    assert json.loads(kept[-1])["facts"] is None
