"""Requests to forget as people word them, read by the trained reader as it is shipped: none is stored as a statement.

How many of them are understood is the weights' business, and may only rise; that the opposite is stored is no reader's
right.
"""

from __future__ import annotations

import pytest
from claims import turn
from trained_reader import trained_reader

from memory.learn import gate
from memory.learn.forgetting import requests_of
from memory.model import Act

REQUESTS = {
    "en": (
        "Please forget that I'm allergic to peanuts.",
        "Forget what I told you about my divorce.",
        "Could you delete my phone number from your memory?",
        "can you pls forget my old address",
        "I want you to forget that I was ever in rehab.",
        "Remove everything you know about my ex.",
        "Erase the bit about my salary.",
        "Actually, forget that I have a dog.",
        "Please delete the fact that I work at Nordwind.",
        "I'd like you to forget my daughter's name.",
        "Would you please remove my birthday from what you remember?",
        "forget my diagnosis",
        "Wipe whatever you have stored on my diet.",
        "Ok, forget that I like red wine.",
        "I need you to forget about the Oslo trip.",
        "Get rid of what I said about my boss.",
        "I'm allergic to shellfish, please forget that.",
        "You can forget my shoe size now.",
        "Please erase that I take insulin.",
        "Sorry, delete my locker number please.",
    ),
    "de": (
        "Vergiss bitte, dass ich Diabetes habe.",
        "Bitte vergiss meine Adresse.",
        "Kannst du meine Telefonnummer löschen?",
        "Lösch bitte alles, was ich über meinen Chef gesagt habe.",
        "Ich möchte, dass du meinen Geburtstag vergisst.",
        "Könntest du bitte vergessen, wo ich arbeite?",
        "vergiss das mit der Scheidung",
        "Streich bitte, dass ich in Bonn wohne.",
        "Entferne meine Kontonummer aus deinem Gedächtnis.",
        "Vergiss, dass meine Tochter Mia heißt.",
    ),
    "es": (
        "Por favor, olvida que tengo diabetes.",
        "Olvida mi dirección.",
        "¿Puedes borrar mi número de teléfono?",
        "Borra todo lo que sabes de mi jefe.",
        "Quiero que olvides dónde trabajo.",
        "¿Podrías olvidar que soy alérgico a las nueces?",
        "olvida lo de mi divorcio porfa",
        "Elimina mi fecha de nacimiento.",
        "Necesito que borres el nombre de mi hija.",
        "Olvídate de que vivo en Lima.",
    ),
    "zh": (
        "请忘掉我对花生过敏这件事",
        "忘掉我的地址",
        "把我的电话号码删掉",
        "请删除我说过的关于我老板的话",
        "你能不能忘记我住在哪里",
        "麻烦你把我女儿的名字忘掉",
        "请你忘记我离婚的事",
        "帮我删除我的生日",
        "请把我的工资从你的记忆里抹掉",
        "忘掉我在北风公司上班",
    ),
}
NO_REQUESTS = (
    "Don't forget that I'm allergic to peanuts.",
    "I forgot my keys at the office again.",
    "I always forget to take my pills in the morning.",
    "I never forget a birthday, I am good at that.",
    "I delete all my social media accounts every January.",
    "Vergiss nicht, dass ich Diabetes habe.",
    "Ich vergesse ständig, meine Tabletten zu nehmen.",
    "No olvides que tengo diabetes.",
    "Siempre olvido las llaves en casa.",
    "别忘了我对花生过敏",
    "我经常忘记吃早饭",
)
UNDERSTOOD_SHARE_MIN = {"en": 0.85, "de": 0.6, "es": 0.4, "zh": 0.6}  # one below what is reached


@pytest.mark.parametrize("language", REQUESTS)
async def test_a_request_to_forget_is_never_stored_as_a_statement(language: str) -> None:
    understood, stored = 0, []
    for text in REQUESTS[language]:
        said = turn(text)
        claims = await trained_reader().read([said], context=())
        understood += bool([one for one in requests_of(claims, [said]) if one.claim.act is Act.FORGET])
        stored += [one.text for one in gate.check_claims(claims, [said]).kept]
    assert stored == []
    assert understood >= UNDERSTOOD_SHARE_MIN[language] * len(REQUESTS[language])


@pytest.mark.parametrize("text", NO_REQUESTS)
async def test_what_only_speaks_of_forgetting_is_no_request(text: str) -> None:
    said = turn(text)
    claims = await trained_reader().read([said], context=())
    assert requests_of(claims, [said]) == []
    assert [
        one.reason for one in gate.check_claims(claims, [said]).dropped if one.reason is gate.Refusal.ASKS_TO_FORGET
    ] == []
