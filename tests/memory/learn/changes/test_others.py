"""What the user changes in their own life leaves alone what another person has, and changes what is theirs."""

from __future__ import annotations

import pytest
from learning_parts import Bench

from memory.learn.changes.supersession import compare
from memory.model import MemoryStatus

OF_TWO = [
    # (one of the user, one of somebody else)
    ("我搬到上海了", "我的邻居住在苏州"),
    ("我现在住在上海", "我邻居小王住在北京"),
    ("我搬到上海了", "我同桌住上海浦东"),
    ("我上个月搬到成都了，邻居都很好", "我邻居住在苏州"),
    ("我现在在腾讯上班", "我们班的同学在华为上班"),
    ("我不吃肉了", "我的客户吃肉"),
    ("我结婚了", "我表弟单身"),
    ("我的手机换成华为了", "我同桌的手机是小米"),
    ("我现在每天喝一杯咖啡", "我师傅每天喝三杯咖啡"),
    ("我把面包车卖了", "我舅舅开面包车上班"),
    ("我把车卖了", "张伟开车上班"),
    ("我搬到上海了", "我的球搭子住在苏州"),
    ("I live in Rome now", "我邻居住在北京"),
    ("I sold the van", "我舅舅开面包车上班"),
    ("I sold the van", "My uncle drives a van to work"),
    ("I sold the van", "Bob drives a van to work"),
    ("I sold the van", "My gardener drives a van"),
    ("I stopped smoking", "My trainer smokes"),
    ("I moved to Turin and sold the flat", "Petra lives in a flat in Genoa"),
    ("Ich wohne jetzt in Ulm", "Meine Nachbarin wohnt in Köln"),
    ("Ahora vivo en Vigo", "Mi vecino vive en Lugo"),
]
OF_ONE = [
    ("我搬到上海了", "我住在苏州"),
    ("我邻居搬到北京了", "我邻居住在苏州"),
    ("我跟小雯分手了", "我女朋友叫小雯"),
    ("我老婆现在在腾讯上班", "我老婆在华为上班"),
    ("我的手机换成华为了", "我的手机是小米"),
    ("我们组长换成晓冬了", "我们组长是老贺"),
    ("我把面包车卖了", "我开面包车上班"),
    ("I sold the van", "I drive a van to work"),
    ("I stopped smoking", "I smoke"),
    ("My brother Leo moved to Vienna", "My brother Leo lives in Turin"),
    ("Leo sold the van", "Leo drives a van to work"),
]


@pytest.mark.parametrize(("own", "another"), OF_TWO)
def test_what_the_user_changes_changes_nothing_of_another_person(own: str, another: str) -> None:
    assert compare(own, another) is None
    assert compare(another, own) is None


@pytest.mark.parametrize(("newer", "older"), OF_ONE)
def test_what_changes_for_one_person_is_changed(newer: str, older: str) -> None:
    assert compare(newer, older) is not None


async def test_where_the_neighbour_lives_is_kept_when_the_user_moves(bench: Bench) -> None:
    async with bench.deployment.start() as process:
        await bench.tell(process, "我住在苏州。", session="first")
        await bench.tell(process, "我邻居小王住在北京。", session="first")
        await bench.worker(process).work_off()
        bench.deployment.clock.now += 100
        await bench.tell(process, "我现在搬到上海了。", session="second")
        await bench.worker(process).work_off()
        active = {memory.content for memory in await bench.memories(status=MemoryStatus.ACTIVE)}
    assert active == {"我邻居小王住在北京。", "我现在搬到上海了。"}
