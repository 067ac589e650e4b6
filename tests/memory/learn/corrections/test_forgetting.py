"""Forgetting by the user's words: what is meant goes for good, nothing else does, and the receipt says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from learning_parts import Bench, Faults, Killed
from turn_logs import START, Process

from memory.errors import Unavailable
from memory.learn.corrections.forgetting import names
from memory.learn.facts import Fact
from memory.learn.plan import Plan, encode
from memory.learn.statements import verbatim
from memory.learn.worker import WorkerSettings
from memory.model import CarriedNote, MemoryStatus, PastNote, RecallStatus, Receipt, Turn
from memory.ports import LearnDue

CAT = "My cat is called Miso."
HOME = "I live in Leeds, near Hyde Park."
JOB = "I work as a nurse at the Royal Infirmary."


async def told(bench: Bench, process: Process, *messages: str, **fields: str) -> None:
    for message in messages:
        await bench.tell(process, message, **fields)
    await bench.worker(process).work_off()


async def forgetting(
    bench: Bench, process: Process, message: str, *, receipt_id: str = "r1", session: str = "s2"
) -> None:
    """A chat that says so, with its receipt."""
    process.receipts.keep(Receipt(receipt_id, "ann", START, RecallStatus.EMPTY, "nothing_relevant"))
    await bench.tell(process, message, session=session, receipt_id=receipt_id)
    await bench.worker(process).work_off()


def asked(topic: str) -> str:
    """The request, in the language of what it names."""
    if not topic.isascii():
        return f"请忘记{topic}"
    return f"Vergiss bitte {topic}." if topic.startswith("mein") else f"Please forget {topic}."


async def outcome(process: Process, receipt_id: str = "r1") -> object:
    receipt = await process.receipts.get("ann", receipt_id)
    return None if receipt is None else dict(receipt.outcome)


async def test_what_is_named_goes_and_the_rest_stays_and_the_receipt_confirms(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, CAT, HOME, JOB)
        cat = next(m.id for m in await bench.memories() if "cat" in m.content)
        await process.notes.keep("ann", "k", PastNote(CAT, (cat,), 9), made_at=START)
        await forgetting(bench, process, "Please forget what I said about my cat.")
        assert await bench.contents() == [HOME, JOB]
        assert await outcome(process) == {"forgot": [cat], "count": 1}
        assert await process.notes.find("ann", ["k"]) == {}  # no later request carries it
        async with process.ledger.write("ann") as held:
            assert await held.forgotten([cat]) == {cat}
    assert bench.count("memproxy_facts_total", outcome="forgotten") == 1


@pytest.mark.parametrize(
    ("told_before", "request_to_forget", "is_gone"),
    [
        (HOME, "Forget my address.", True),
        (HOME, "Please forget where I live", True),
        (HOME, "Forget that I live in Leeds", True),
        (HOME, "Forget that I live in Bristol", False),
        (JOB, "forget my job", True),
        (CAT, "forget my dog", False),
        (CAT, "forget my salary", False),
        ("My sister lost her job in May.", "forget my job", False),
        ("My sister lost her job in May.", "forget what I told you about my sister", True),
        ("My birthday is on 4 May.", "Vergiss bitte meinen Geburtstag", True),
        ("Mein Hund heißt Bello.", "Vergiss, was ich dir über meinen Hund erzählt habe", True),
        ("Mi gato se llama Luna.", "Olvida lo que te dije sobre mi gato", True),
        ("我的生日是五月四号。", "忘掉我的生日", True),
        ("我家养了一只猫，叫米粒。", "请忘掉关于我的猫的事", True),
        ("我住在上海徐汇区。", "把我的地址忘掉", True),
        ("我住在上海徐汇区。", "忘掉我的生日", False),
        ("我对花生过敏。", "请忘记我对花生过敏", True),
        ("我对海鲜过敏。", "请忘记我对花生过敏", False),
    ],
)
async def test_a_memory_goes_only_if_it_says_what_is_named(
    bench: Bench, told_before: str, request_to_forget: str, is_gone: bool
) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, told_before)
        assert len(await bench.memories()) == 1
        await forgetting(bench, process, request_to_forget)
        assert (await bench.memories() == []) is is_gone
        if not is_gone:
            assert await outcome(process) == {"forgot": [], "count": 0, "reason": "nothing_matched"}


async def test_the_past_of_a_memory_that_says_the_same_goes_with_it(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, "I live in Leeds.")
        await told(bench, process, "I moved to Bristol, so I now live in Bristol.")
        assert len(await bench.memories()) == 2
        await forgetting(bench, process, "Forget my address")
        assert await bench.memories() == []


async def test_everything_about_me_is_all_that_a_chat_there_would_be_given(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, CAT, project="p")
        await told(bench, process, HOME)
        await told(bench, process, JOB, project="q")
        await told(bench, process, "I sail.", user="bob")
        await bench.tell(process, "Forget everything you know about me.", session="s2", project="p")
        await bench.worker(process).work_off()
        assert [m.content for m in await bench.memories()] == [JOB]
        await bench.tell(process, "Forget everything about me.", session="s3")
        await bench.worker(process).work_off()
        assert await bench.memories() == []
        assert len(await bench.memories("bob")) == 1


async def test_what_is_said_before_the_request_goes_and_what_is_said_after_it_is_learnt(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, CAT)
        await bench.tell(process, f"{HOME} Forget about my cat. My cat is called Bean now.")
        await bench.worker(process).work_off()
        assert await bench.contents() == [HOME, "My cat is called Bean now."]


async def test_the_request_itself_teaches_nothing(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, "Please forget that I live in Leeds with my sister.")
        await bench.worker(process).work_off()
        assert await bench.memories() == []


@pytest.mark.parametrize(
    "message",
    [
        "Don't remember this: I am dating Sam.",
        "I am quitting my job in May. That's off the record.",
        "别记住这个：我打算五月辞职。",
    ],
)
async def test_what_is_off_the_record_is_not_learnt(bench: Bench, message: str) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, HOME)
        await forgetting(bench, process, message, session="s1")
        assert await bench.contents() == [HOME]
        assert await outcome(process) == {"withheld": True}


async def test_off_the_record_by_itself_speaks_of_what_was_said_before_it(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, HOME, CAT)
        await forgetting(bench, process, "That's off the record.", session="s1")
        assert await bench.contents() == [HOME]


async def test_dropping_a_matter_forgets_nothing(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, CAT)
        await told(bench, process, "Forget it.", "Don't forget to feed my cat!", "Did you forget my cat?")
        assert CAT in await bench.contents()


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("name", ["save_plan", "forget", "drop", "delete", "apply", "unlock", "amend"])
async def test_forgetting_survives_a_crash_at_any_step(bench: Bench, name: str, is_after: bool) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, CAT, HOME)
        cat = next(m.id for m in await bench.memories() if "cat" in m.content)
        process.receipts.keep(Receipt("r1", "ann", START, RecallStatus.EMPTY, "nothing_relevant"))
        await bench.tell(process, f"Forget about my cat. {JOB}", session="s2", receipt_id="r1")
        faults = Faults(name=name, error=Killed(), is_after=is_after)
        with pytest.raises((Killed, BaseExceptionGroup)):
            await bench.worker(process, faults=faults).work_off()
        bench.deployment.clock.now += 60
        await bench.worker(process).work_off()
        assert await bench.contents() == [HOME, JOB]
        assert await outcome(process) == {"forgot": [cat], "count": 1}


async def test_a_stored_plan_forgets_the_same_again(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, CAT, HOME)
        cat = next(m.id for m in await bench.memories() if "cat" in m.content)
        await bench.tell(process, "Forget about my cat.", session="s2")
        lease = await process.log.lease(now=bench.deployment.clock.now, seconds=5, due=LearnDue())
        assert lease is not None
        await process.log.save_plan(lease, encode(Plan(forget=(cat,))))
        bench.deployment.clock.now += 60
        await bench.worker(process).work_off()
        assert await bench.contents() == [HOME]


class AwayAtFirst:
    """A model that is away when it is first asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def extract(self, turns: Sequence[Turn], *, context: Sequence[Turn], heard: object = None) -> list[Fact]:
        self.asked += 1
        if self.asked == 1:
            raise Unavailable("model", "away")
        return verbatim.extract(turns, context=context)


@pytest.mark.parametrize("attempts", [1, 2], ids=["from a dead letter", "at a second attempt"])
@pytest.mark.parametrize(
    ("request_", "left"),
    [("Forget about my cat.", [HOME]), ("Forget everything you know about me.", []), ("Thanks!", [CAT, HOME])],
)
async def test_what_is_learnt_late_heeds_what_was_asked_meanwhile_in_another_session(
    bench: Bench, request_: str, left: list[str], attempts: int
) -> None:
    settings, learner = WorkerSettings(attempts_max=attempts, retry_base_seconds=5.0), AwayAtFirst()
    async with bench.deployment.start() as process:
        await bench.tell(process, f"{CAT} {HOME}", session="s1")
        await bench.worker(process, learner=learner, settings=settings).work_off()
        await bench.tell(process, request_, session="s2")
        await bench.worker(process, learner=learner, settings=settings).work_off()
        assert await bench.memories() == []
        bench.deployment.clock.now += 60
        await process.log.replay([])
        await bench.worker(process, learner=learner, settings=settings).work_off()
        assert await bench.contents() == sorted(left)
        await bench.tell(process, CAT, session="s3")
        await bench.worker(process, settings=settings).work_off()
        assert CAT in await bench.contents(), "a request reaches back, never forward"


async def test_a_stored_plan_that_is_carried_out_late_heeds_it_too(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, f"{CAT} {HOME}", session="s1")
        with pytest.raises(Killed):
            await bench.worker(process, faults=Faults(name="apply", error=Killed())).work_off()
        bench.deployment.clock.now += 60
        broken_off = await process.log.lease(now=bench.deployment.clock.now, seconds=5, due=LearnDue())
        assert broken_off is not None
        assert broken_off.plan is not None
        await process.log.bury(broken_off, now=bench.deployment.clock.now, reason="given up")
        await bench.tell(process, "Forget about my cat.", session="s2")
        await bench.worker(process).work_off()
        await process.log.replay([])
        await bench.worker(process).work_off()
        assert await bench.contents() == [HOME]


async def test_what_our_own_note_told_is_no_news_when_the_user_repeats_it(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, "My sister's partner Tomasz runs the bakery in Headingley.")
        (memory,) = await bench.memories()
        note = CarriedNote(1, (memory.id,), 20, is_new=True)
        process.receipts.keep(Receipt("r1", "ann", START, RecallStatus.USED, "found", notes=(note,)))
        await asyncio.sleep(0.05)
        said = "Tomasz runs the bakery in Headingley."
        await bench.tell(process, said, session="s2", receipt_id="r1")
        await bench.worker(process).work_off()
        assert [replace(m, updated_at=0) for m in await bench.memories()] == [replace(memory, updated_at=0)]
    assert bench.count("memproxy_facts_dropped_total", reason="echo") == 1


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I live in Leeds.", "I moved to Bristol, so I now live in Bristol."),
        ("我住在杭州。", "我搬到苏州了。"),
        ("My boss is called Fiona.", "My boss is called Rakesh now."),
    ],
)
async def test_what_our_own_note_told_and_holds_no_more_is_news_when_the_user_says_it_again(
    bench: Bench, first: str, then: str
) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, first)
        await told(bench, process, then)
        (old,) = await bench.memories(status=MemoryStatus.SUPERSEDED)
        note = CarriedNote(1, (old.id,), 20, is_new=True)
        process.receipts.keep(Receipt("r1", "ann", START, RecallStatus.USED, "found", notes=(note,)))
        await asyncio.sleep(0.05)
        await bench.tell(process, first, session="s2", receipt_id="r1")
        await bench.worker(process).work_off()
        assert old.content in [m.content for m in await bench.memories(status=MemoryStatus.ACTIVE)]
    assert bench.count("memproxy_facts_dropped_total", reason="echo") == 0


@pytest.mark.parametrize(
    ("topic", "content"),
    [
        ("my birthday", "My birthday is in May and my mom's birthday is in June."),
        ("my mom's birthday", "My birthday is in May and my mom's birthday is in June."),
        ("my address", "My sister lives in Oslo and I live in Leeds."),
        ("我的地址", "我妈妈住在绍兴，我住在杭州。"),
        ("my job", "My wife is a nurse and I work at Halden."),
        ("my address", "Meine Schwester wohnt in Bonn und ich wohne in Köln."),
    ],
)
async def test_a_memory_that_also_tells_of_somebody_else_goes_whole(bench: Bench, topic: str, content: str) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, content)
        before = await bench.memories()
        assert before
        await forgetting(bench, process, asked(topic))
        assert await bench.memories() == []


@pytest.mark.parametrize(
    ("topic", "content"),
    [
        ("my address", "My sister lives in Oslo and I visit her in May."),
        ("my address", "My sister, whom I call often, lives in Oslo."),
        ("my job", "My wife works at Halden, I cook."),
        ("my birthday", "My brother's birthday is in May and I bake the cake."),
        ("我的地址", "我妈妈住在绍兴，我每年去一次。"),
        ("meinen Geburtstag", "Meine Schwester hat im Mai Geburtstag, ich backe."),
    ],
)
async def test_what_only_mentions_the_user_beside_somebody_elses_matter_stays(
    bench: Bench, topic: str, content: str
) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, content)
        before = [memory.id for memory in await bench.memories()]
        assert before
        await forgetting(bench, process, asked(topic))
        assert [memory.id for memory in await bench.memories()] == before


def test_a_topic_that_names_nothing_means_nothing() -> None:
    assert not names("my old things", "My old things are in the attic")
    assert not names("me", "I like tea")


@pytest.mark.parametrize(
    ("topic", "content"),
    [
        ("my birthday", "My uncle's birthday is on 9 May."),
        ("my birthday", "The birthday of my aunt is on 9 May."),
        ("my birthday", "Ingrid's birthday is on 9 May."),
        ("my name", "My horse's name is Comet."),
        ("my name", "My boat is called Comet."),
        ("my job", "My brother's job wears him out."),
        ("my job", "My flatmate has her job at Halden."),
        ("my address", "My physiotherapist lives in Porto."),
        ("my address", "My brother Odd moved to Bergen."),
        ("my salary", "My partner earns 3000 a month."),
        ("my email", "My tax adviser can be reached at tax@firm.example."),
        ("my phone number", "My landlord's phone number is 555 0100."),
        ("my cat", "My cousin's cat is ill."),
        ("my husband", "My ex-husband is called Odd."),
        ("my ex-husband", "My husband is called Odd."),
        ("my father", "My father-in-law is called Odd."),
        ("my mother's birthday", "My birthday is on 9 May."),
        ("my heart operation", "My father's heart operation is in June."),
        ("我的生日", "我哥哥的生日是三月九号。"),
        ("我的电话", "房东的电话是555-0100。"),
        ("我的手术", "我爷爷的手术在六月。"),
        ("mein Geburtstag", "Der Geburtstag meiner Schwester ist im Mai."),
        ("mi nombre", "El nombre de mi gata es Luna."),
    ],
)
def test_what_is_mine_does_not_mean_what_is_anothers(topic: str, content: str) -> None:
    assert not names(topic, content)


@pytest.mark.parametrize(
    ("topic", "content"),
    [
        ("my mother's birthday", "The birthday of my mum is on 9 May."),
        ("Ingrid's birthday", "Ingrid's birthday is on 9 May."),
        ("where my brother lives", "My brother Odd lives in Bergen."),
        ("my former husband", "My ex-husband is called Odd."),
        ("my cousin's cat", "My cousin's cat is ill."),
        ("my job", "My sister and I work at Halden."),
        ("my address", "I live in Porto with my sister."),
        ("my home address", "My home address is 9 Mill Lane."),
        ("my heart operation", "I had a heart operation in June."),
        ("my birthday", "Name: Odd. Birthday: 9 May."),
        ("我的地址", "我和姐姐一起，我住在苏州。"),
        ("我爸爸的生日", "我爸的生日是三月九号。"),
    ],
)
def test_whose_it_is_may_be_worded_otherwise(topic: str, content: str) -> None:
    assert names(topic, content)


async def test_whose_it_is_decides_where_many_have_one(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await told(bench, process, "My aunt's birthday is on 9 May. My birthday is on 4 July. My wife is called Una.")
        await forgetting(bench, process, "Forget my birthday")
        await forgetting(bench, process, "Please forget my ex-wife", receipt_id="r2", session="s3")
        assert await bench.contents() == ["My aunt's birthday is on 9 May.", "My wife is called Una."]
