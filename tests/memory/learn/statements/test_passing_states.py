"""What will be over tomorrow is not kept; what lasts is, though it sounds alike."""

from __future__ import annotations

import pytest
from turn_logs import a_turn

from memory.learn.statements import verbatim


def kept(text: str) -> list[str]:
    return [fact.content for fact in verbatim.extract([a_turn("t", text=text)])]


@pytest.mark.parametrize(
    "text",
    [
        "I'm exhausted today.",
        "I'm really excited right now!",
        "I feel a bit overwhelmed",
        "I'm in a rush",
        "ugh I'm so done today",
        "唉，我好累",
        "I'm on my way home",
        "I think this looks great",
        "I'm not sure about that",
        "I'm getting a KeyError when I run it",
        "I got 403 errors again",
        "My query doesn't return anything",
        "our build keeps failing",
        "I tried your code and it still hangs",
        "I'll go with the second option",
        "I have to go now",
        "I just had lunch",
        "I can't find the button",
        "我现在有点困",
        "我今天心情很差",
        "我觉得你说的有道理",
        "我的程序又报错了",
        "我遇到一个奇怪的错误",
        "我在排队",
        "我先去睡了",
        "今天天气真好",
        "我的天，这也太贵了",
        "这个公式我看不懂",
        "Ich bin gerade total müde",
        "Mein Skript läuft nicht",
        "Estoy muy cansada hoy",
        "Mi código no compila",
    ],
)
def test_a_state_of_the_moment_is_not_kept(text: str) -> None:
    assert kept(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I'm always exhausted on Mondays",
        "I'm stressed because my mother is ill",
        "I'm excited about my new job at Nordwind",
        "I feel anxious when I have to speak in public",
        "I'm having trouble sleeping since the baby was born",
        "I'm sick with the flu until Friday",
        "I'm on parental leave right now",
        "I'm in Lisbon until Friday",
        "I have an exam tomorrow",
        "I have two errors in my tax return for 2023",
        "My car doesn't start when it is cold",
        "My app doesn't support dark mode yet",
        "I think remote work suits me better",
        "I believe in reincarnation",
        "I have to go to Vienna every month",
        "I'm working on a book about bees",
        "我最近失眠很严重",
        "周四要交论文初稿",
        "我一直很累",
        "我觉得远程办公更适合我",
        "我现在在上海出差",
        "Ich bin oft müde",
        "Estoy cansado desde que nació mi hija",
    ],
)
def test_what_lasts_is_kept(text: str) -> None:
    assert kept(text) != []
