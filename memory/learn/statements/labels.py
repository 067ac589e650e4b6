"""Type, category, subject and importance of a statement, by its words. Soft: nothing is kept or dropped by them."""

from __future__ import annotations

import re
from dataclasses import replace

from memory.learn.statements.salience import Statement, Voice
from memory.learn.words import lexicon

IMPORTANCE_EXPLICIT = 0.9
IMPORTANCE_BY_CATEGORY = {"constraint": 0.8, "goal": 0.6, "decision": 0.6, "preference": 0.6, "correction": 0.7}
IMPORTANCE_ELSE = 0.5
CONFIDENCE_EXPLICIT = 0.95
CONFIDENCE_BY_VOICE = {Voice.FIRST_PERSON: 0.9, Voice.WISH: 0.85, Voice.THIRD_PERSON: 0.75}

_STEPS = re.compile(
    r"\bfirst\b.*\bthen\b|\bthen\b.*\b(?:then|finally|at the end|last)\b|\bonly then\b|\bfirst\b.*\bat the end\b|"
    r"zuerst.*dann|primero.*(?:luego|después)|"
    r"先.*(?:再|然后|最后)",
    re.IGNORECASE | re.DOTALL,
)
# The first that fits is the category.
_CATEGORIES = (
    ("correction", re.compile(r"\b(?:i said|i meant|not what i said|correction|mixed (?:up|something)|typo|"
        r"actually it['’]s)\b|不对|说错|说反|我说的是|更正|"
                              r"\bquise decir\b|\bich meinte\b", re.IGNORECASE)),
    ("constraint", re.compile(r"\b(?:allerg\w+|intoleran\w+|can['’]?t|cannot|must(?:n['’]t)?|not allowed|only (?:if|"
        r"when|before|after)|never|diabet\w+|"
                              r"c(?:o)?eliac|halal|kosher|vegan|vegetarian|wheelchair|celíac\w+|alérgic\w+|kein\w*|"
                              r"darf nicht|no puedo?|no puede)\b|"
                              r"过敏|不能|吃不了|闻不了|忌|只能|最多|轮椅|痛风|糖尿病|素食", re.IGNORECASE)),
    ("decision", re.compile(r"\b(?:decided|we go with|going with|settled on|chose|entschieden|decidi\w+)\b|决定|"
        r"选定|定了", re.IGNORECASE)),
    ("preference", re.compile(r"\b(?:prefer\w*|like|love|hate|favou?rite|rather|enjoy|dislike|can['’]t stand|"
        r"always want|never want|fan of|"
                              r"mag|liebe|hasse|lieber|am liebsten|prefiero|me gusta\w*|odio|encanta\w*)\b|喜欢|"
                              r"讨厌|爱吃|爱喝|偏好|不吃|更想|宁愿", re.IGNORECASE)),
    ("goal", re.compile(r"\b(?:want to|plan to|planning to|hope to|goal|aim|saving (?:up )?for|would like to|"
        r"dream of|will (?:start|learn)|vorhabe|möchte|"
                        r"quiero|planeo|espero)\b|打算|想要|目标|计划|希望|准备考", re.IGNORECASE)),
    ("habit", re.compile(r"\b(?:every|each|usually|often|daily|weekly|always|on (?:mon|tues|wednes|thurs|fri|satur|"
        r"sun)days|times a (?:week|day|month)|"
                         r"jeden?|immer|meistens|todos los|cada|suelo|los (?:lunes|martes|miércoles|jueves|"
                         r"viernes))\b|每|通常|经常|平时|习惯|一直", re.IGNORECASE)),
)  # fmt: skip
_EVENT = re.compile(
    r"\b(?:wedding|birthday|appointment|trip|flight|meeting|deadline|due|interview|exam|visit\w*|moving|move[sd]?|"
    r"cancel\w*|last (?:week|month|year|night)|"
    r"yesterday|tomorrow|today|tonight|next (?:week|month|year)|passed|finished|sold|bought|termin|hochzeit|boda|"
    r"cita|übermorgen|gestern|morgen)\b|"
    r"昨天|今天|明天|后天|下周|下个?月|上周|上个?月|生日|婚礼|考过|搬|去了|取消|预产期",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"\s*(?:my|our|mein\w{0,2}|unser\w{0,2}|mis?|nuestr[oa]s?)\s+(?:([\w-]+)['’]s\s+)?((?:\w+\s+)?[\wÀ-ÿ-]+)",
    re.IGNORECASE,
)
_SUBJECT_ZH = re.compile(r"\s*(?:我|我们|咱)?(?:的|家)?")


def category_of(statement: Statement) -> str:
    for category, pattern in _CATEGORIES:
        if pattern.search(statement.text):
            return category
    if statement.voice is Voice.WISH:
        return "preference"
    return "event" if is_event(statement.text) else "fact"


def type_of(statement: Statement) -> str:
    if _STEPS.search(statement.text):
        return "procedural"
    return "episodic" if is_event(statement.text) else "semantic"


def is_event(text: str) -> bool:
    dated = lexicon.MONTH_NAMES.search(text) and re.search(r"\d", text)
    return bool(_EVENT.search(text) or dated)


def subject_of(statement: Statement) -> str:
    """Whom it is about: "user", or the relation it opens with, or that its first word means ("sister", "女儿")."""
    if statement.antecedent:
        who = statement.antecedent.stands_for
        return subject_of(replace(statement, text=who, language=lexicon.language_of(who), antecedent=None))
    if statement.language == "zh":
        lead = _SUBJECT_ZH.match(statement.text)
        relation = lexicon.RELATIONS_ZH.match(statement.text, lead.end() if lead else 0)
        return relation.group() if relation else "user"
    owned = _SUBJECT.match(statement.text)
    if owned:
        relation = lexicon.RELATIONS.search(owned.group(2)) or lexicon.RELATIONS.search(owned.group(1) or "")
        if relation:
            return relation.group().lower()
    return "user"


def importance_of(statement: Statement, category: str) -> float:
    if statement.is_explicit:
        return IMPORTANCE_EXPLICIT
    return IMPORTANCE_BY_CATEGORY.get(category, IMPORTANCE_ELSE)


def confidence_of(statement: Statement) -> float:
    return CONFIDENCE_EXPLICIT if statement.is_explicit else CONFIDENCE_BY_VOICE[statement.voice]
