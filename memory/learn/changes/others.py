"""Whether two clauses are about different people: what the user changes at home changes nothing at the neighbour's.

A person is told by a relation ("my uncle"), by a name in the place of the subject, or, where the word is in no list, by
doing what only persons do: "my gardener drives a van". Who is named in both, or meant by "he", is one person. It must
never say so of a thing: "my rent" is the user's. Patterns, each linear in its text; English and Chinese, German and
Spanish in part. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memory.learn.words import change_words as words
from memory.learn.words.persons import NAME_ZH, PERSONS_ZH, relations_of, without_relations
from memory.learn.words.terms import terms
from memory.learn.words.values import names_of

IGNORE_CASE = re.IGNORECASE

_VERB = re.compile(
    r"\b(?:is|are|was|has|have|gets?|lives?|works?|likes?|loves?|goes|plays?|deploys?|uses?|drives?|ist|hat|wohnt|"
    r"mag|es|tiene|vive|in|at|with|to|for)\b",
    IGNORE_CASE,
)
# "Bob drives a van", "my gardener lives in Ulm": what only a person does.
_DOES = (
    r"(?:drives|lives|works (?:at|for|as|in)|owns|studies|teaches|smokes|drinks|eats|loves|likes|plays|rides|swims|"
    r"speaks|earns|weighs|commutes|fährt|wohnt|lebt|arbeitet|raucht|trinkt|isst|vive|trabaja|conduce|fuma|bebe|come)\b"
)
_SOMEBODY_DOES = re.compile(
    r"\s*(?P<who>(?-i:[A-ZÀ-Þ])[\wà-ÿ-]+(?: (?-i:[A-ZÀ-Þ])[\wà-ÿ-]+)?|"
    r"(?:my|our|mein\w*|unser\w*|mi|nuestr[oa]|the) (?:[\w'’-]+ ){0,2}?[\w'’-]+)"
    rf" (?:(?:also|now|still|often|always|usually|auch|jetzt|también|ahora) )?{_DOES}",
    IGNORE_CASE,
)
_USER_DOES = re.compile(
    r"\s*(?:(?:and|but|so|now|actually|also|well|und|y|ya|ahora|jetzt|finally|last \w+|yesterday|today)[,\s]+)*"
    r"(?:i|ich|yo)\b|\s*(?:my|mein\w*|mi)\b",
    IGNORE_CASE,
)
_SOMEBODY_MEANT = re.compile(
    r"\b(?:he|she|they|him|her|them|his|their|theirs|er|ihn|ihm|sein\w*|él|ella|ellos|ellas)\b|[他她]", IGNORE_CASE
)
_DOES_ZH = (
    "(?:现在|目前|今年|去年|一直|已经|刚|平时|每[天周年月]|也|都|最近|从来|还|经常|以前|很|特别|最)*"
    "(?:住|搬[到去家]|在[^，。；]{1,8}(?:上班|工作|上学|教|做|当|任职)|结婚|离婚|单身|抽|戒|喜欢|讨厌|不?吃|不?喝|养|开着?[^会始学放]|"
    "骑|\\d{1,3}岁|对[^，。；]{1,6}过敏)"
)
_OPENING_ZH = "(?:^|[，,。；])(?:(?:不过|但是?|而|其实|听说|另外|对了)[，,]?)?"
_BETWEEN_ZH = "(?:的|家|公司|单位|班上?|组里?|楼[上下]|隔壁|以前|有一?个|一个)*"
_SOMEBODY_DOES_ZH = re.compile(
    f"{_OPENING_ZH}(?:(?:我们?|咱们?){_BETWEEN_ZH}(?P<person>{PERSONS_ZH.pattern})(?P<called>{NAME_ZH}(?={_DOES_ZH}))?"
    "(?:(?:名?叫|是)(?P<called_so>[^，,。；]{1,4})(?=[，,。；]|$))?|"
    f"(?P<named>{PERSONS_ZH.pattern}|{NAME_ZH})(?={_DOES_ZH})|"
    f"(?:我们?|咱们?)的(?P<who>[^，,。；的是在]{{1,6}}?)(?={_DOES_ZH}))"
)
_USER_DOES_ZH = re.compile(
    f"{_OPENING_ZH}(?:(?:现在|目前|今年|去年|今天|昨天|刚|最近|终于|已经|上个?[周月]|下个?[周月])*(?:我|咱)们?"
    f"(?!{_BETWEEN_ZH}(?:{PERSONS_ZH.pattern})|们的|[记说写弄搞]错|刚才|之前说)|"
    "(?:现在|刚|最近|终于|已经|上个?[周月])*(?:搬[到去家]|住|换工作|跳槽|离职|辞职|戒了|结婚|离婚))"
)


def speaks_of_others(clause: str, text: str) -> bool:
    """Whether the two are about different people: a relation or a name in the place of the subject tells."""
    if without_relations(names_of(clause) & names_of(text)):
        return False
    if is_somebody_elses(clause, text):
        return True
    old, new = relations_of(clause), relations_of(text)
    if old != new and not words.ROLES.search(clause):
        return True
    first_old, first_new = _subject_names(clause), _subject_names(text)
    return bool(first_old and (first_new or names_of(text)) and first_old.isdisjoint(first_new))


def is_somebody_elses(clause: str, text: str) -> bool:
    """Whether one tells what the user does or has, and the other what a person does who is not named in the first."""
    return _is_of_another(clause, text) or _is_of_another(text, clause)


def said_of_it(clause: str, said: Sequence[str]) -> list[str]:
    """Those of the clauses of one statement, in order, that may be about whom `clause` is about.

    A clause without a subject has that of the one before it: "I sold the van and bought a bike".
    """
    return list(_of_one_person(clause, said))


def _of_one_person(clause: str, said: Sequence[str]) -> Iterator[str]:
    is_elses = False
    for text in said:
        if _is_the_users(text) or _somebody(text) or _SOMEBODY_MEANT.search(text):
            is_elses = is_somebody_elses(clause, text)
        if not is_elses:
            yield text


def _is_of_another(told: str, own: str) -> bool:
    who = _somebody(told)
    if not who or not _is_the_users(own) or _SOMEBODY_MEANT.search(own):
        return False
    return not any(word in own.casefold() for word in who) and not terms(" ".join(who)) & terms(own)


def _is_the_users(text: str) -> bool:
    return not _somebody(text) and bool(_USER_DOES.match(text) or _USER_DOES_ZH.search(text))


def _somebody(text: str) -> frozenset[str]:
    """The words for the person who does it, where it is not the user."""
    match = _SOMEBODY_DOES.match(text)
    if match:
        who = terms(match["who"]) - {"my", "our", "the"}
        return frozenset() if _USER_DOES.match(match["who"]) and not who else who
    zh = _SOMEBODY_DOES_ZH.search(text)
    return frozenset(word for word in zh.groups() if word) if zh else frozenset()


def _subject_names(text: str) -> frozenset[str]:
    """The names before the verb, or the one that owns what follows: "Magnus's the 30th"."""
    verb = _VERB.search(text)
    owner = re.match(r"\s*(\S+)['’]s\s", text)
    return names_of(text[: verb.start()] if verb else "") | names_of(owner.group(1) if owner else "")


__all__ = ["is_somebody_elses", "said_of_it", "speaks_of_others"]
