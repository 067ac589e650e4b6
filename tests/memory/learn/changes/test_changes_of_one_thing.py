"""A journey moved, a version raised, a move, a weight, a medicine given up: of one and the same only."""

from __future__ import annotations

import pytest

from memory.learn.changes.supersession import compare, may_change

CHANGED = [
    # (newer, older, what of the older one still holds)
    ("The Lima flight has moved to July.", "I'm flying to Lima in June.", ""),
    ("My trip to Quito got moved to 3 May", "I'm travelling to Quito in March", ""),
    ("Der Flug nach Wien ist auf Mai verschoben", "Ich fliege im April nach Wien", ""),
    ("去成都的机票改到7月了", "我6月去成都出差", ""),
    (
        "We upgraded production to Postgres 16 yesterday.",
        "Our production database is Postgres 14 and we deploy with ArgoCD.",
        "we deploy with ArgoCD",
    ),
    ("I upgraded my laptop to Ubuntu 24.04", "My laptop is on Ubuntu 22.04", ""),
    ("We migrated the billing service to Django 5", "The billing service runs Django 4", ""),
    (
        "Ich bin letzten Monat nach Dresden gezogen.",
        "Ich wohne seit 2019 in Leipzig und arbeite als Elektriker.",
        "Ich arbeite als Elektriker",
    ),
    ("Wir sind nach Kassel gezogen, ich bin nach Kassel gezogen", "Ich wohne in Jena", ""),
    ("Me he mudado a Granada.", "Vivo en Sevilla y soy profesora de música.", "soy profesora de música"),
    ("Nos hemos mudado a Vigo", "Vivo en Lugo", ""),
    ("I moved to Turin", "I live in Rome and work as a nurse", "I work as a nurse"),
    (
        "The Malaga workshop is off, the organisers are ill",
        "I'm flying to Malaga on 3 April for a workshop, and on 22 April to Bern for Ada's wedding",
        "I'm flying on 22 April to Bern for Ada's wedding",
    ),
    ("I weigh 78 kg", "I weigh 82 kg", ""),
    ("I weigh 84.5 kilos now", "I weigh 82 kg", ""),
    ("Ich wiege jetzt 78 kg", "Ich wiege 80 kg", ""),
    ("我体重70公斤", "我体重75公斤", ""),
    ("I stopped taking metformin because of side effects", "My doctor put me on metformin 500 mg twice a day", ""),
    ("I quit lisinopril last week", "I'm on lisinopril for my blood pressure", ""),
    ("I stopped smoking", "I smoke", ""),
    ("我不吃二甲双胍了", "我每天吃二甲双胍", ""),
]
BOTH_HOLD = [
    ("The Lima flight has moved to July.", "I'm flying to Tokyo in June."),
    ("The Lima flight has moved to July.", "I'm flying to Lima in July"),
    ("The Lima office moved to a new building in July", "I'm flying to Lima in June"),
    ("I'm flying to Lima in October", "I'm flying to Lima in June"),
    ("去成都的机票改到7月了", "我6月去西安出差"),
    ("We upgraded staging to Postgres 16", "Our production database is Postgres 14"),
    ("We upgraded production to Redis 7", "Our production database is Postgres 14"),
    ("We might upgrade production to Postgres 17", "Our production database is Postgres 16"),
    ("Ich bin in ein neues Büro gezogen", "Ich wohne in Leipzig"),
    ("Wir haben gepackt, ich bin mit dem Team nach Jena gezogen", "Ich wohne in Leipzig"),
    ("Mein Bruder ist nach Dresden gezogen", "Ich wohne in Leipzig"),
    ("Ich bin nach Dresden gefahren", "Ich wohne in Leipzig"),
    ("Me he mudado de oficina", "Vivo en Sevilla"),
    ("Mi hermana se ha mudado a Granada", "Vivo en Sevilla"),
    ("Me he mudado a Granada", "Mi hermana vive en Sevilla"),
    ("I weigh 78 kg", "My suitcase weighs 23 kg"),
    ("I weigh 78 kg", "My dog weighs 30 kg"),
    ("I weigh 78 kg", "I lift 60 kg"),
    ("I'm 181 cm", "I weigh 78 kg"),
    ("I want to weigh 70 kg", "I weigh 78 kg"),
    ("我体重70公斤", "我儿子体重20公斤"),
    ("I stopped taking ibuprofen because of the metformin", "I take metformin twice a day"),
    ("I stopped taking ibuprofen and started metformin", "I take metformin twice a day"),
    ("I stopped eating meat", "I eat eggs every morning"),
    ("I stopped taking metformin", "My father takes metformin"),
    ("I stopped smoking", "I drink coffee"),
    ("我不吃二甲双胍了", "我每天吃阿司匹林"),
    ("我不吃二甲双胍了", "我爸每天吃二甲双胍"),
]


@pytest.mark.parametrize(("newer", "older", "rest"), CHANGED)
def test_what_is_told_anew_of_the_same_thing_replaces_it_and_the_rest_stands(newer: str, older: str, rest: str) -> None:
    verdict = compare(newer, older)
    assert may_change(newer)
    assert verdict is not None
    assert verdict.remainder == rest


@pytest.mark.parametrize(("newer", "older"), BOTH_HOLD)
def test_another_thing_of_the_same_sort_stands(newer: str, older: str) -> None:
    assert compare(newer, older) is None
