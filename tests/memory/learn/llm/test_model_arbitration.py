"""A model is asked about pairs that rules leave open, and rules say what its answer may do. A scripted real server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from learning_parts import Bench
from scripted_model import ScriptedModel, different, in_turn, running_model
from turn_logs import a_turn

from memory.learn.changes.supersession import compare
from memory.learn.extraction import VerbatimLearner
from memory.learn.llm import arbitration
from memory.learn.llm.model_learner import Asking, ModelArbiter
from memory.learn.statements import verbatim
from memory.model import MemoryStatus, Trust

OLDER, NEWER = "My gym is on Mill Street.", "My gym is by the station."
ASKING = Asking("scripted", seconds=5.0)


def changes(_question: str) -> str:
    return '{"is":"changes"}'


def arbiter(scripted: ScriptedModel, *, pairs_max: int = 4) -> ModelArbiter:
    return ModelArbiter(scripted.model, ASKING, pairs_max=pairs_max)


async def learnt(bench: Bench, *messages: str, scripted: ScriptedModel | None = None, pairs_max: int = 4) -> set[str]:
    """Each message in a session of its own; what is active afterwards."""
    asked = None if scripted is None else arbiter(scripted, pairs_max=pairs_max)
    async with bench.deployment.start() as process:
        for number, message in enumerate(messages):
            await bench.tell(process, message, session=f"s{number}")
            await bench.worker(process, learner=VerbatimLearner(), arbiter=asked).work_off()
    return {memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE)}


def test_the_pair_here_is_one_that_rules_leave_open() -> None:
    assert compare(NEWER, OLDER) is None
    assert arbitration.may_be_changed(NEWER, OLDER)


async def test_without_a_model_both_stay(bench: Bench) -> None:
    assert await learnt(bench, OLDER, NEWER) == {OLDER, NEWER}


async def test_what_a_model_calls_a_change_supersedes_and_keeps_its_history(bench: Bench) -> None:
    async with running_model(bears=changes) as scripted:
        assert await learnt(bench, OLDER, NEWER, scripted=scripted) == {NEWER}
    (old,) = await bench.memories(status=MemoryStatus.SUPERSEDED)
    (new,) = await bench.memories(status=MemoryStatus.ACTIVE)
    assert (old.content, old.superseded_by, old.invalid_at) == (OLDER, new.id, new.said_at)
    assert scripted.questions == [f"Older: {OLDER}\nNewer: {NEWER}"]


@pytest.mark.parametrize("answer", ["same", "different"])
async def test_any_other_word_leaves_both(bench: Bench, answer: str) -> None:
    async with running_model(bears=lambda _: f'{{"is":"{answer}"}}') as scripted:
        assert await learnt(bench, OLDER, NEWER, scripted=scripted) == {OLDER, NEWER}


async def test_what_else_the_older_statement_said_goes_on(bench: Bench) -> None:
    both = "My gym is on Mill Street, and my sister Ana lives in Oslo."
    async with running_model(bears=changes) as scripted:
        active = await learnt(bench, both, NEWER, scripted=scripted)
    assert NEWER in active
    assert any("Ana lives in Oslo" in content and "Mill Street" not in content for content in active)


async def test_it_is_asked_with_a_strict_schema_and_the_same_prefix_each_time(bench: Bench) -> None:
    async with running_model(bears=different) as scripted:
        await learnt(bench, OLDER, NEWER, "My gym is next to the mall.", scripted=scripted)
    bodies = scripted.asked
    assert len(bodies) == 3
    assert all(b["response_format"]["json_schema"]["schema"] == arbitration.SCHEMA for b in bodies)
    assert all(b["messages"][:-1] == bodies[0]["messages"][:-1] for b in bodies)
    assert all(b["max_tokens"] <= 16 for b in bodies)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My sister Ana lives in Oslo.", "My brother Tom lives in Bergen."),  # two people
        ("My work phone is a Pixel.", "My phone is an iPhone."),  # two of one sort
        ("We have a trip to Rome in May.", "We have a trip to Oslo in July."),  # names that can both hold
        ("I take 20 mg of lisinopril.", "I take 5 mg of amlodipine."),
        ("My gym is on Mill Street.", "My gym still is on Mill Street."),  # it stays
        ("I play the cello.", "I keep bees."),  # nothing in common
    ],
)
async def test_where_rules_forbid_a_change_the_model_is_not_asked_and_could_change_nothing(
    bench: Bench, older: str, newer: str
) -> None:
    async with running_model(bears=changes) as scripted:
        assert await learnt(bench, older, newer, scripted=scripted) == {older, newer}
    assert scripted.asked == []
    assert arbitration.ruling(arbitration.OpenPair(0, "m", newer, older), "changes") is None


@pytest.mark.parametrize("trust", [Trust.EXPLICIT, Trust.BOOTSTRAPPED])
async def test_what_was_asked_for_or_stored_by_an_application_no_model_changes(bench: Bench, trust: Trust) -> None:
    await learnt(bench, OLDER)
    (known,) = await bench.memories()
    (fact,) = verbatim.extract([a_turn("later", at=known.said_at + 10, text=NEWER)])
    assert len(arbitration.open_pairs([fact], [known])) == 1
    assert arbitration.open_pairs([fact], [replace(known, trust=trust)]) == []


async def test_what_was_said_later_is_not_changed_by_what_is_learnt_later(bench: Bench) -> None:
    await learnt(bench, OLDER)
    (known,) = await bench.memories()
    (fact,) = verbatim.extract([a_turn("earlier", at=known.said_at - 10, text=NEWER)])
    assert arbitration.open_pairs([fact], [known]) == []


async def test_no_more_pairs_are_asked_about_than_allowed(bench: Bench) -> None:
    gyms = [f"My gym is by the {name} gate." for name in ("Alpha", "Bravo", "Carlo", "Delta", "Echo")]
    async with running_model(bears=different) as scripted:
        await learnt(bench, *gyms, scripted=scripted, pairs_max=1)
    assert len(scripted.asked) == 4  # one at each statement but the first


async def test_junk_twice_gives_the_window_up_and_what_was_extracted_stays_stored(bench: Bench) -> None:
    async with running_model(bears=lambda _: "they differ") as scripted:
        assert await learnt(bench, OLDER, NEWER, scripted=scripted) == {OLDER}
        assert len(scripted.asked) == 2
        assert bench.count("memproxy_windows_total", outcome="retried") == 1
        scripted.server.says = None
        scripted.server.content = '{"is":"changes"}'
        bench.deployment.clock.now += 10_000
        async with bench.deployment.start() as process:
            await bench.worker(process, arbiter=arbiter(scripted)).work_off()
    assert {m.content for m in await bench.memories(status=MemoryStatus.ACTIVE)} == {NEWER}


async def test_one_mended_answer_is_enough(bench: Bench) -> None:
    async with running_model(bears=in_turn("changes", '{"is":"changes"}')) as scripted:
        assert await learnt(bench, OLDER, NEWER, scripted=scripted) == {NEWER}
    assert len(scripted.asked) == 2
    assert '{"is":"same"}' in scripted.questions[1]
