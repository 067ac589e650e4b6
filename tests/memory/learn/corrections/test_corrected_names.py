"""That somebody's name was wrong puts right their name, and takes away nothing else that is known of them."""

from __future__ import annotations

import pytest
from learning_parts import Bench

from memory.learn.changes.supersession import compare, may_change
from memory.model import MemoryStatus

MIRA = "Actually I was mistaken: her name is Mira, not Mia."


@pytest.mark.parametrize("session", ["second", "third"])
@pytest.mark.parametrize("answer", ["I see, Mia lives in Turin.", "Noted."])
async def test_a_corrected_name_takes_away_nothing_else(bench: Bench, session: str, answer: str) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, "My niece Mia lives in Rome.", session="first")
        await bench.worker(process).work_off()
        bench.deployment.clock.now += 100
        await bench.tell(process, "Where does my niece live?", answer="Mia lives in Rome.", session="second")
        await bench.tell(process, "No, that's wrong, Mia lives in Turin.", answer=answer, session="second")
        await bench.worker(process).work_off()
        bench.deployment.clock.now += 100
        await bench.tell(process, MIRA, answer="Mira, then.", session=session)
        await bench.worker(process).work_off()
        active = [memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE)]
        gone = [memory.content for memory in await bench.memories(status=MemoryStatus.SUPERSEDED)]
    assert any("Turin" in content for content in active)
    assert gone == ["My niece Mia lives in Rome."]


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("Sorry, his name is Jon, not John", "John works at Halden Labs"),
        (MIRA, "No, that's wrong, Mia lives in Turin."),
        ("Oops, she's called Mira, not Mia", "My niece Mia is in year 4"),
        ("Perdón, se llama Mira, no Mia", "Mia vive en Turín"),
        ("Ich habe mich vertan, sie heißt Mira, nicht Mia", "Mia wohnt in Turin"),
        ("记错了，她叫小雨，不叫小雪", "小雪住在都灵"),
        ("记错了，我侄女叫小雨，不是小雪", "我侄女小雪上三年级"),
    ],
)
def test_a_name_put_right_leaves_what_else_is_told_of_who_bears_it(said: str, known: str) -> None:
    assert compare(said, known) is None


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("Sorry, his name is Jon, not John", "My coach's name is John"),
        ("His name is Jon, not John", "My coach is called John"),
        (MIRA, "My niece is called Mia"),
        ("Perdón, se llama Mira, no Mia", "Mi sobrina se llama Mia"),
        ("Ich habe mich vertan, sie heißt Mira, nicht Mia", "Meine Nichte heißt Mia"),
        ("记错了，我侄女叫小雨，不是小雪", "我侄女叫小雪"),
        ("Sorry, I said it wrong, Mia lives in Turin", "My niece Mia lives in Rome"),
    ],
)
def test_what_told_the_wrong_name_or_the_wrong_town_falls(said: str, known: str) -> None:
    assert may_change(said)
    assert compare(said, known) is not None
