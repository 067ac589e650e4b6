"""Whether two statements about the user cannot both hold although no word of change fell: denied, older, left, married.

"I'm allergic to nuts" and "it turns out I'm not allergic to nuts"; "I'm 34" and "I'm 35 now". And whether a sentence
gives the value of an attribute at all: "my boss is Anna" does, "my boss is on holiday" does not. Patterns only. Pure.
"""

from __future__ import annotations

import re
from functools import lru_cache

from memory.learn.changes.diet import DIET, EATS, breaks_diet
from memory.learn.changes.told import Told, cannot_both_hold
from memory.learn.changes.told_of_persons import told_of_persons
from memory.learn.changes.told_of_things import told_of_things
from memory.learn.words import change_words as words
from memory.learn.words.clauses import clauses_of
from memory.learn.words.lexicon import NATIONALITY
from memory.learn.words.persons import relations_of
from memory.learn.words.terms import terms
from memory.learn.words.values import names_of, values_of

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
_NOT = re.compile(r"\b(?:kein\w*|nicht|nunca|never)\b", IGNORE_CASE)
_NOT_ZH = re.compile("(?:并|根本|已经)?[不没](?:有|是)?|了$")
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
_LIKES = re.compile(
    r"\bi(?:['’]ve)?(?: \w+)? (?:love|like|adore|enjoy|come (?:round|around) to|grown to (?:like|love)|got to like|"
    r"learnt to like)(?P<object> [^,.;!]+)|"
    r"\bich (?:mag|liebe)(?P<object_de> (?!kein|nicht)[^,.;!]+)|\b(?<!no )me (?:gusta|"
    r"encanta)n?(?P<object_es> [^,.;!]+)|"
    r"我(?:现在|挺|很|最|特别|超|真的|越来越)*(?:喜欢|爱)(?:上|吃|喝|看)*了?(?P<object_zh>[^，,。；]+)",
    IGNORE_CASE,
)
_DISLIKES = re.compile(
    r"\bi(?: \w+)? (?:hate|dislike|can['’]?t (?:stand|bear)|cannot (?:stand|bear)|(?:don['’]?t|do not)(?: \w+)? like|"
    r"detest|loathe)(?P<object> [^,.;!]+)|"
    r"\bich (?:hasse|mag kein\w*)(?P<object_de> [^,.;!]+)|\b(?:odio|detesto|no me gustan?)(?P<object_es> [^,.;!]+)|"
    r"我(?:现在|很|最|特别|真的|越来越)*(?:讨厌|不喜欢|受不了|不爱)(?:吃|喝|看)*(?P<object_zh>[^，,。；]+)",
    IGNORE_CASE,
)
_BESIDE = re.compile(
    r"\b(?:really|anymore|any more|again|these days|now|but|since|because|though|at all|lately|very much|"
    r"so much)\b.*|的$|了$",
    IGNORE_CASE,
)

# By what it is about: how the newer statement tells it, and how the older one does.
_MATTERS = (
    ("work", _LEFT_JOB, _WORKS),
    ("opinion", _LIKES, _DISLIKES),
    ("opinion", _DISLIKES, _LIKES),
    ("food", EATS, DIET),
    ("couple", words.PARTED, words.TOGETHER),
    ("health", words.RECOVERED, words.AILING),
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
    """Whether `newer`, a clause that the user said, leaves nothing of `older`, likewise."""
    if words.LONG_AGO.search(newer):
        return False
    if _WORKS.search(older) and _LEFT_JOB.search(newer) and _names_the_same(newer, older):
        return True
    if any(cannot_both_hold(new, old) for new in _told(newer) for old in _told(older)):
        return True
    return breaks_diet(newer, older) or _thinks_otherwise(newer, older)


def may_contradict(text: str) -> bool:
    """Whether the text could contradict anything, so that earlier statements have to be looked at."""
    return bool(_matters_of(text)[0])


def may_be_contradicted(older: str, newer: str) -> bool:
    """The quick look that spares most pairs the long one: whether both tell of one matter."""
    return bool(_matters_of(newer)[0] & _matters_of(older)[1])


@lru_cache(maxsize=4_096)  # the memories of a user are compared with each new statement
def _matters_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What it might change, and what of it might be changed."""
    told = {one.attribute for part in (text, *(clause.text for clause in clauses_of(text))) for one in _told(part)}
    newer = {matter for matter, said, _ in _MATTERS if said.search(text)}
    older = {matter for matter, _, known in _MATTERS if known.search(text)}
    return frozenset(told | newer), frozenset(told | older)


@lru_cache(maxsize=4_096)  # the memories of a user are compared with each new statement
def _told(clause: str) -> tuple[Told, ...]:
    """What the clause tells as holding now and as the only one: nothing that is past, weighed, or comes beside it."""
    if any(pattern.search(clause) for pattern in (words.LONG_AGO, words.WEIGHED, words.ADDED)):
        return ()
    return (*told_of_persons(clause), *told_of_things(clause))


def _thinks_otherwise(newer: str, older: str) -> bool:
    """ "I hate mint", "I love mint": the very same thing, and the opposite said of it."""
    for one, other in ((_LIKES, _DISLIKES), (_DISLIKES, _LIKES)):
        now, before = _object(one, newer), _object(other, older)
        if now and now == before:
            return True
    return False


def _object(opinion: re.Pattern[str], text: str) -> frozenset[str]:
    match = opinion.search(text)
    if match is None or (opinion is _LIKES and _DISLIKES.search(text)):
        return frozenset()
    return terms(_BESIDE.sub("", next(found for found in match.groups() if found)).strip())


def is_past(newer: str, older: str) -> bool:
    """Two who parted, or a trouble that healed: both clauses name who, or what of the body, it was."""
    if words.PARTED.search(newer) and words.TOGETHER.search(older):
        return _names_the_same(newer, older)
    if words.RECOVERED.search(newer) and words.AILING.search(older) and not words.NEGATED.search(newer):
        matter = terms(words.AILING.sub(" ", older)) & terms(words.RECOVERED.sub(" ", newer))
        return bool(matter) and relations_of(newer) == relations_of(older)
    return False


def matter_of(clause: str) -> frozenset[str]:
    """What a statement is about, whether it affirms or denies it, and however it became known."""
    bare = _NOT.sub(" ", _FRAME.sub(" ", clause))
    return terms(_NOT_ZH.sub("", bare) if _IDEOGRAPH.search(bare) else bare)


def gives_value(attribute: str, value: str) -> bool:
    """Whether what is said of the attribute is a value of it, and no remark on it."""
    attribute, value = _PURPOSE.sub("", attribute).strip(), value.strip()
    if _SOMEBODY.search(attribute):
        named = (_NAMED_ZH if _IDEOGRAPH.search(value) else _NAMED).match(value)
        return bool(named) and not NATIONALITY.match(value)
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


def _names_the_same(newer: str, older: str) -> bool:
    if _IDEOGRAPH.search(older):
        return bool(terms(newer) & (terms(older) - terms("上班工作任职 女朋友 男朋友 老婆 老公 对象")))
    return bool(names_of(newer) & names_of(older))


__all__ = ["contradicts", "gives_value", "is_past", "matter_of", "may_be_contradicted", "may_contradict", "purpose_of"]
