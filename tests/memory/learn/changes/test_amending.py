"""A value put right in the same chat takes the place of the one said before; where that is unsure, none does."""

from __future__ import annotations

import pytest
from learning_parts import Bench

from memory.learn.changes.amending import amended
from memory.learn.consolidation import consolidate
from memory.learn.facts import Fact
from memory.model import Evidence, MemoryStatus, Role, Scope


@pytest.mark.parametrize(
    ("known", "said", "anew"),
    [
        ("I run three times a week.", "hang on, it's four times, I forgot the Sunday one", "I run four times a week."),
        ("My locker is number 41", "oops, it's 52", "My locker is number 52"),
        ("Choir is on Tuesdays", "wait, it's Wednesdays", "Choir is on Wednesdays"),
        ("We fly in May", "sorry, I meant June", "We fly in June"),
        ("My dentist is in Kassel", "no, it's Jena", "My dentist is in Jena"),
        ("We fly to Oslo, then to Rome", "sorry, it's Bergen, not Oslo", "We fly to Bergen, then to Rome"),
        ("llevo seis años de administrativo", "perdona, son ocho", "llevo ocho años de administrativo"),
        ("Ich habe drei Kinder", "Moment, es sind vier", "Ich habe vier Kinder"),
        ("下周去苏州的展会", "写错了…是常州，不是苏州", "下周去常州的展会"),
    ],
)
def test_a_value_of_the_same_kind_takes_the_place_of_the_only_one(known: str, said: str, anew: str) -> None:
    assert amended(known, said) == anew


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("I run three times a week.", "wait, it's 5 pm already"),
        ("I run three times a week.", "sorry, it's Jena"),
        ("I run three times and swim two times a week", "hang on, it's four times"),
        ("I have two cats and three dogs", "oops, it's four"),
        ("We fly to Oslo, then to Rome", "sorry, it's Bergen"),
        ("My locker is number 41", "sorry, it's raining here"),
        ("My locker is number 41", "it's 52 degrees here"),
        ("Choir is on Tuesdays", "sorry, it's June"),
        ("下周去无锡的展会", "写错了，是常州，不是苏州"),
        ("llevo seis años de administrativo", "perdona, es tarde"),
    ],
)
def test_a_value_of_another_kind_or_of_one_among_several_takes_none(known: str, said: str) -> None:
    assert amended(known, said) == ""


@pytest.mark.parametrize(
    ("told", "said", "anew"),
    [
        ("I run three times a week.", "hang on, it's four times, I forgot the Sunday run", "I run four times a week."),
        ("Llevo seis años de administrativo.", "perdona, son ocho", "Llevo ocho años de administrativo."),
    ],
)
async def test_what_is_put_right_in_the_same_chat_is_learnt_as_it_was_meant(
    bench: Bench, told: str, said: str, anew: str
) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, told, answer="Sure.", session="one")
        bench.deployment.clock.now += 30
        await bench.tell(process, said, answer="Noted.", session="one")
        await bench.worker(process).work_off()
        (memory,) = await bench.memories(status=MemoryStatus.ACTIVE)
        (gone,) = await bench.memories(status=MemoryStatus.SUPERSEDED)
    assert (memory.content, gone.content) == (anew, told)
    assert memory.evidence[0].quote in said


async def test_in_another_chat_the_same_words_change_nothing(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, "I run three times a week.", answer="Sure.", session="one")
        bench.deployment.clock.now += 30
        await bench.tell(process, "hang on, it's four times, I forgot the Sunday run", session="two")
        await bench.worker(process).work_off()
        assert not await bench.memories(status=MemoryStatus.SUPERSEDED)


def test_a_repeat_learns_what_was_meant_and_no_more() -> None:
    scope = Scope("u", session_id="one")
    facts = [
        Fact(
            "I run three times a week.", Evidence("I run three times a week.", "turn 1", Role.USER), scope, said_at=1.0
        ),
        Fact("hang on, it's four times", Evidence("hang on, it's four times", "turn 2", Role.USER), scope, said_at=9.0),
    ]
    once = [change.memory for change in consolidate(facts, [], now=10.0, ids=str)]
    again = [c.memory for c in consolidate(facts[1:], once, now=11.0, ids=str, done=())]
    assert [row.content for row in once if row.status is MemoryStatus.ACTIVE] == ["I run four times a week."]
    assert {row.content for row in again} == {"I run four times a week."}
