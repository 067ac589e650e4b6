"""Requests to forget that set something aside for a while, except something, or tell the new value beside it."""

from __future__ import annotations

import pytest
from learning_parts import Bench
from turn_logs import START, Process

from memory.model import MemoryStatus, RecallStatus, Receipt

NOTHING = {"forgot": [], "count": 0, "reason": "nothing_matched"}


async def asked(bench: Bench, process: Process, request: str, *told: str) -> object:
    """What the receipt says of it, after all of `told` was learnt."""
    for message in told:
        await bench.tell(process, message)
    await bench.worker(process).work_off()
    process.receipts.keep(Receipt("r1", "ann", START, RecallStatus.EMPTY, "nothing_relevant"))
    await bench.tell(process, request, session="s2", receipt_id="r1")
    await bench.worker(process).work_off()
    receipt = await process.receipts.get("ann", "r1")
    return None if receipt is None else dict(receipt.outcome)


async def active(bench: Bench) -> list[str]:
    return sorted(memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE))


@pytest.mark.parametrize(
    ("told", "request_"),
    [
        ("I'm allergic to shellfish.", "Forget my shellfish allergy for a minute and suggest a starter."),
        ("I'm allergic to shellfish.", "Forget that I'm allergic to shellfish for this menu."),
        ("I'm allergic to shellfish.", "Just this once, forget that I'm allergic to shellfish."),
        ("My salary is 52,000 euros.", "Please forget my salary for the time being."),
        ("My salary is 52,000 euros.", "For now, forget my salary."),
        ("My salary is 52,000 euros.", "Can you forget my salary for today?"),
        ("My parrot is called Kiki.", "Forget my parrot; the neighbour is the real issue here."),
        ("我的工资是两万。", "先忘掉我的工资"),
        ("我的工资是两万。", "请把我的工资暂时忘掉"),
        ("我对虾过敏。", "这次忘掉我对虾过敏"),
        ("Ich wohne in Bonn.", "Vergiss mal kurz, dass ich in Bonn wohne."),
        ("Mein Hund heißt Bello.", "Vergiss fürs Erste meinen Hund."),
        ("Mi gato se llama Luna.", "Olvida por ahora mi gato."),
    ],
)
async def test_what_is_set_aside_for_a_while_stays_and_the_remark_is_no_fact(
    bench: Bench, told: str, request_: str
) -> None:
    async with bench.deployment.start() as process:
        assert await asked(bench, process, request_, told) == NOTHING
        assert await active(bench) == [told]


@pytest.mark.parametrize(
    ("told", "request_"),
    [
        ("My salary is 52,000 euros.", "Forget my salary for good."),
        ("My salary is 52,000 euros.", "Forget my salary permanently, not just for now."),
        ("I plan to sail to Corfu this summer.", "Forget my plan for this summer."),
        ("My parrot is called Kiki.", "Forget the parrot I told you about today, please forget my parrot."),
        ("我的先锋音响是黑色的。", "请忘记我的先锋音响"),
        ("Mein Hund heißt Bello.", "Vergiss bitte jetzt meinen Hund."),
        ("Mi gato se llama Luna.", "Olvida mi gato para siempre."),
    ],
)
async def test_a_time_that_is_no_limit_leaves_the_order_as_it_is(bench: Bench, told: str, request_: str) -> None:
    async with bench.deployment.start() as process:
        await asked(bench, process, request_, told)
        assert await active(bench) == []


TOLD = ("My parrot is called Kiki.", "Kiki turned seven in May.", "I live in Ghent.", "I work as a roofer.")


@pytest.mark.parametrize(
    "request_",
    [
        "Forget everything you know about me except my parrot.",
        "Forget everything about me but my parrot, please.",
        "Apart from my parrot, forget everything you know about me.",
    ],
)
async def test_what_an_exception_names_stays_with_all_that_bears_its_name(bench: Bench, request_: str) -> None:
    async with bench.deployment.start() as process:
        await asked(bench, process, request_, *TOLD)
        assert await active(bench) == ["Kiki turned seven in May.", "My parrot is called Kiki."]


@pytest.mark.parametrize(
    ("told", "request_", "left"),
    [
        (("我的狗叫豆豆。", "我住在苏州。"), "除了我的狗，忘掉关于我的一切", "我的狗叫豆豆。"),
        (("我的狗叫豆豆。", "我住在苏州。"), "忘掉关于我的一切，除了我的狗。", "我的狗叫豆豆。"),
        (
            ("Mein Hund heißt Bello.", "Ich wohne in Bonn."),
            "Vergiss alles über mich außer meinem Hund.",
            "Mein Hund heißt Bello.",
        ),
        (
            ("Mi gato se llama Luna.", "Vivo en Lugo."),
            "Olvida todo lo que sabes de mí, menos mi gato.",
            "Mi gato se llama Luna.",
        ),
    ],
)
async def test_an_exception_is_heard_in_each_language(
    bench: Bench, told: tuple[str, ...], request_: str, left: str
) -> None:
    async with bench.deployment.start() as process:
        await asked(bench, process, request_, *told)
        assert await active(bench) == [left]


@pytest.mark.parametrize(
    "request_",
    [
        "Forget everything you know about me except my boat.",
        "Forget everything you know about me except my parrot and my boat.",
        "Forget everything you know about me except what matters to you.",
    ],
)
async def test_where_it_is_not_sure_what_is_excepted_nothing_goes(bench: Bench, request_: str) -> None:
    async with bench.deployment.start() as process:
        assert await asked(bench, process, request_, *TOLD) == NOTHING
        assert await active(bench) == sorted(TOLD)


@pytest.mark.parametrize(
    ("told", "request_", "gone", "learnt"),
    [
        (
            "My address is 9 Mill Lane, Hull.",
            "Forget my old address, my new one is 7 Quay Road, Bath.",
            "Mill Lane",
            "7 Quay Road",
        ),
        ("I work at Siemens.", "Forget my job at Siemens, I work at Bosch now.", "Siemens", "Bosch"),
        ("My phone number is 0151 1234567.", "Forget my phone number, it's 0151 7654321 now.", "1234567", "7654321"),
        ("My boss is called Una.", "Please forget my boss, it is Rakesh now.", "Una", "My boss is Rakesh now"),
        ("Ich wohne in Bonn.", "Vergiss meine Adresse, ich wohne jetzt in Celle.", "Bonn", "Celle"),
        ("我住在苏州。", "忘掉我的地址，我现在住在宁波。", "苏州", "宁波"),
    ],
)
async def test_the_new_value_told_behind_the_order_is_learnt(
    bench: Bench, told: str, request_: str, gone: str, learnt: str
) -> None:
    async with bench.deployment.start() as process:
        await asked(bench, process, request_, told)
        left = " ".join(await active(bench))
        assert gone not in left
        assert learnt in left


@pytest.mark.parametrize(
    "request_",
    [
        "Forget that I live in Ghent and that my new boss is called Una.",
        "Forget that I work at Halden and I now live in Ghent.",
        "Forget my parrot, it's late now.",
        "Forget my address, my street was long and my house was cold.",
    ],
)
async def test_what_else_the_order_names_teaches_nothing(bench: Bench, request_: str) -> None:
    async with bench.deployment.start() as process:
        await asked(bench, process, request_)
        assert await active(bench) == []
