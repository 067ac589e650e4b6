"""Whether two statements about the user cannot both hold although no word of change fell: denied, older, left, married.

"I'm allergic to nuts" and "it turns out I'm not allergic to nuts"; "I'm 34" and "I'm 35 now". And whether a sentence
gives the value of an attribute at all: "my boss is Anna" does, "my boss is on holiday" does not. Patterns only. Pure.
"""

from __future__ import annotations

import re

from memory.learn import change_words as words
from memory.learn.terms import terms
from memory.learn.values import names_of, values_of

IGNORE_CASE = re.IGNORECASE

_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
# What stands around a statement and says only how it became known.
_FRAME = re.compile(
    r"\b(?:(?:as )?(?:it )?turn(?:s|ed) out(?: that)?|after all|actually|in fact|apparently|in the end|anyway|"
    r"it (?:seems|appears)(?: that)?|(?:my|the|an?) (?:[\w-]+ ){0,2}(?:tests?|doctor|results?|vet|dentist) "
    r"(?:says?|said|shows?|showed|told me|confirmed|confirms?)(?: that)?|doch|eigentlich|al final|en realidad|"
    r"resulta que)\b[,:]?|"
    "(?:医生|检查结果?|化验|结果)(?:说|显示|表明)|其实|原来|结果|发现|后来",
    IGNORE_CASE,
)
_NOT_ZH = re.compile("(?:并|根本|已经)?[不没](?:有|是)?|了$")
_AGE = re.compile(
    r"\bi(?:['’]m| am)\s+(?:(?:now|already|just|only)\s+)?(?P<age>\d{1,3})"
    r"(?:\s+years?\s+old|\s+now|\s+already|\s*[.!]?$)|"
    r"\bi(?:['’]ve)?\s+(?:just\s+)?turn(?:ed)?\s+(?P<turned>\d{1,3})\b(?!\s*(?:degrees|pages))|"
    r"\bich bin (?:jetzt )?(?P<age_de>\d{1,3})(?: jahre| jetzt|\s*[.!]?$)|\btengo (?:ya )?(?P<age_es>\d{1,3}) años|"
    "(?:^|[，,。])我?(?:今年|现在|已经|刚满|满)*(?P<age_zh>\\d{1,3}|[一二三四五六七八九十]{1,3}) ?岁",
    IGNORE_CASE,
)
_LEFT_JOB = re.compile(
    r"\b(?:i|we)(?:['’]ve|['’]m| have| am| was)? (?:\w+ ){0,2}(?:fired|laid off|let go|resigned|quit|left "
    r"(?!(?:my|the|our|a|an|some|it)\b))\b|\bich habe .{0,30}(?:gekündigt|verlassen)\b|"
    "我.{0,8}(?:离开|被.{0,8}(?:辞退|开除|裁)|辞职|离职|离开了)",
    IGNORE_CASE,
)
_WORKS = re.compile(
    r"\bi(?:['’]m| am)? (?:\w+ )?(?:work(?:ing)?|employed)\b|\bmy (?:job|employer)\b|\bich arbeite\b|\btrabajo\b|"
    "我.{0,4}在.{1,12}(?:上班|工作|任职)",
    IGNORE_CASE,
)
_SINGLE = re.compile(
    r"\bi(?:['’]m| am) (?:(?:still|currently|happily|now) )?(?:single|unmarried|not married)\b|\bich bin (?:noch )?"
    r"(?:single|ledig)\b|\b(?:estoy|soy) solter[oa]\b|我.{0,4}(?:单身|未婚|没结婚)",
    IGNORE_CASE,
)
_MARRIED = re.compile(
    r"\b(?:i|we)(?:['’]ve| have)? (?:just |finally )?(?:got|gotten) (?:married|engaged)\b|\bi(?:['’]m| am) (?:now )?"
    r"(?:married|engaged)\b|\bi married\b|\b(?:ich habe|wir haben) .{0,30}geheiratet\b|\bme casé\b|\bnos casamos\b|"
    "我们?[^，。；没不未]{0,8}(?:结婚了|订婚了|领证了)",
    IGNORE_CASE,
)

_SOMEBODY = re.compile(
    r"(?:name|nombre|manager|boss|chefin?|jef[ea]|employer)$|(?:名字|老板|领导|上司|组长|经理)$", IGNORE_CASE
)
_MEASURED = re.compile(
    r"(?:budget|presupuesto|age|birthday|geburtstag|cumpleaños|weight|height|shoe size|deadline|salary|rent)$|"
    "(?:预算|生日|年龄|体重|身高|鞋码|工资)$",
    IGNORE_CASE,
)
_REACHED = re.compile(r"(?:address|e-?mail|phone number|adresse|dirección|hometown|time ?zone)$", IGNORE_CASE)
_DOES = re.compile(r"\bjob$", IGNORE_CASE)
_PURPOSE = re.compile(r"\s(?:for|für|para) (?P<purpose>[^,.;]+)", IGNORE_CASE)
_NAMED = re.compile(
    r"(?:(?:now|jetzt|ahora|called|still|the|dr|mr|mrs|ms|prof|herr|frau)\b\.?\s*|[\"'“‘])*(?-i:[A-ZÀ-Þ])\w",
    IGNORE_CASE,
)
_NAMED_ZH = re.compile("(?!很|太|在|不|没|个|最|比较|非常|挺|有|去|一个|这样|什么).*(?<![的了])[。！]?$")
_DONE = re.compile(r"(?:now |jetzt |ahora )?(?:an?|the|to|at|in|with|as|eine?|un|una)\b", IGNORE_CASE)
_COUNTED = re.compile(r"\d|[一二三四五六七八九十百千万]|\b(?:hundred|thousand|million|tomorrow|today|mañana|morgen)\b")


def contradicts(newer: str, older: str) -> bool:
    """Whether `newer`, a clause about the user, leaves nothing of `older`, likewise."""
    if words.LONG_AGO.search(newer):
        return False
    if _SINGLE.search(older) and _MARRIED.search(newer):
        return True
    if _WORKS.search(older) and _LEFT_JOB.search(newer) and _names_the_same(newer, older):
        return True
    new, old = _age(newer), _age(older)
    return bool(new and old) and new != old


def may_contradict(text: str) -> bool:
    """Whether the text could contradict anything, so that earlier statements have to be looked at."""
    return any(pattern.search(text) for pattern in (_AGE, _LEFT_JOB, _MARRIED))


def matter_of(clause: str) -> frozenset[str]:
    """What a statement is about, whether it affirms or denies it, and however it became known."""
    bare = _FRAME.sub(" ", clause)
    return terms(_NOT_ZH.sub("", bare) if _IDEOGRAPH.search(bare) else bare)


def gives_value(attribute: str, value: str) -> bool:
    """Whether what is said of the attribute is a value of it, and no remark on it."""
    attribute, value = _PURPOSE.sub("", attribute).strip(), value.strip()
    if _SOMEBODY.search(attribute):
        return bool((_NAMED_ZH if _IDEOGRAPH.search(value) else _NAMED).match(value))
    if _MEASURED.search(attribute):
        told = values_of(value)
        return bool(_COUNTED.search(value) or told.weekdays or told.days or told.amounts)
    if _REACHED.search(attribute):
        return bool(re.search(r"[\d@\u3400-\u9fff]", value) or names_of(value))
    return not _DOES.search(attribute) or bool(_DONE.match(value) or names_of(value))


def purpose_of(value: str) -> frozenset[str]:
    """What an amount is for: two budgets may both hold."""
    match = _PURPOSE.search(value)
    return terms(match["purpose"]) if match else frozenset()


def _age(text: str) -> str:
    match = _AGE.search(text)
    return next((found for found in match.groups() if found), "") if match else ""


def _names_the_same(newer: str, older: str) -> bool:
    if _IDEOGRAPH.search(older):
        return bool(terms(newer) & (terms(older) - terms("上班工作任职")))
    return bool(names_of(newer) & names_of(older))


__all__ = ["contradicts", "gives_value", "matter_of", "may_contradict", "purpose_of"]
