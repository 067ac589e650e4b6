"""A question or a request tells something beside what it asks, and that is kept in the user's own words."""

from __future__ import annotations

import pytest
from turn_logs import a_turn

from memory.learn.statements import verbatim


def kept(text: str) -> list[str]:
    return [fact.content for fact in verbatim.extract([a_turn("t", text=text)])]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Write a limerick about my dog Bruno, who is 11 and hates rain", "my dog Bruno, who is 11 and hates rain"),
        ("Recommend a restaurant for my wife who is vegan", "my wife who is vegan"),
        ("What could I give my 8-year-old son who loves dinosaurs?", "my 8-year-old son who loves dinosaurs"),
        ("What should my 3 year old dog eat?", "my 3 year old dog"),
        ("Can you plan a trip to Prague for me and my husband Tom?", "my husband Tom"),
        ("As a vegetarian, what can I order there?", "I am a vegetarian"),
        ("as a night nurse, how should I sleep?", "I am a night nurse"),
        ("作为素食者，我能在这家店吃什么？", "我是素食者"),
        ("What should I cook, my wife is vegan?", "my wife is vegan"),
        ("Can I take ibuprofen, I'm on blood thinners?", "I'm on blood thinners"),
        ("When you write code for me, use type hints.", "When you write code for me, use type hints."),
        ("最近在戒糖，晚饭不吃主食，能吃红薯吗", "最近在戒糖，晚饭不吃主食"),
        (
            "Kannst du noch ergänzen, dass ich im Rollstuhl sitze",
            "dass ich im Rollstuhl sitze",
        ),
        ("再写上我三月才入职", "我三月才入职"),
        ("next time quote prices in zlotys", "next time quote prices in zlotys"),
        ("正在备孕，能喝咖啡吗？", "正在备孕"),
        ("写代码的时候请加上类型注解", "写代码的时候请加上类型注解"),
    ],
)
def test_what_a_request_tells_is_kept(text: str, told: str) -> None:
    assert told in kept(text)


@pytest.mark.parametrize(
    "text",
    [
        "As a joke, what could I tell my boss?",
        "As a first step, what should I do?",
        "How can my wife and I save money?",
        "Is my best friend a good witness?",
        "Write to my boss Dr. Lee",
        "Write about my hero Bob, who is a wizard",
        "Imagine my brother Bob, who is a wizard",
        "In my novel, my brother Bob, who is a wizard, dies. What next?",
        "When I'm sick, does my boss have to pay?",
        "When you get a chance, fix the bug",
        "When did you write that?",
        "作为一个例子，我该写什么？",
        "now the same in a jokey tone",
        "语气再正式一点",
        "最近在流行什么",
        "平时要注意什么？",
    ],
)
def test_what_tells_nothing_is_not(text: str) -> None:
    assert kept(text) == []


def test_the_evidence_is_what_the_user_said() -> None:
    (fact,) = verbatim.extract([a_turn("t", text="As a vegetarian, what can I order there?")])
    assert fact.evidence.quote == "As a vegetarian"
