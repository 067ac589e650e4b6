"""Whom "she" or 他 means at the head of a statement, and where "there" is, if the user's words before leave no doubt.

"What laptop suits my daughter? She studies architecture.": the second sentence alone would be of nobody. Only people
and animals of the user's own ("my daughter", 我妈妈), only where exactly one that fits was spoken of, and nobody else
was named since. A wrong person is worse than none. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from memory.learn.words import lexicon

REACH_CHARACTERS = 1_200  # before the statement, in each message: what stands further off is out of mind


class _Kind(Enum):
    SHE = "she"
    HE = "he"
    IT = "it"
    THEY = "they"


@dataclass(frozen=True, slots=True)
class Antecedent:
    """`word` of the statement stands for `stands_for`; both are words of the user. `is_own`: a relative, a friend, a
    pet of the user, not just somebody named."""

    word: str
    stands_for: str
    is_own: bool = True


_HEAD = re.compile(
    r"(?P<lead>(?:[^,;.!?]{1,40},\s+)?)(?:(?:and|but|so|well|also|oh|ah|btw|anyway|und|aber|y|pero)[, ]+)*"
    r"(?P<word>she|he|they|sie|er|ella|él)(?=['’](?:s|re|ve)\b|\s+\w)",
    re.IGNORECASE,
)
_HEAD_ZH = re.compile(r"(?P<lead>(?:[^，,。]{1,12}[，,])?)(?:而且|不过|但是?|另外|哦|对了)*[，,]?(?P<word>[她他它]们?)")
_CAPITAL = re.compile(r"(?<!\bin )(?<!\bfrom )(?<!\bat )(?<!\bto )(?<!\bnear )\b[A-ZÀ-Þ][a-zà-ÿ]{2,}")
_KIND_OF = {
    "she": _Kind.SHE, "sie": _Kind.SHE, "ella": _Kind.SHE, "她": _Kind.SHE,
    "he": _Kind.HE, "er": _Kind.HE, "él": _Kind.HE, "他": _Kind.HE,
    "它": _Kind.IT,
    "they": _Kind.THEY, "他们": _Kind.THEY, "她们": _Kind.THEY, "它们": _Kind.THEY,
}  # fmt: skip
# "Sie" may mean "they" and "you"; only a verb in the singular tells.
_GERMAN_SINGULAR = re.compile(r"(?:sie|er)\s+(?:ist|hat|mag|wird|kann|will|war|\w{2,}[^e\s]t)\b", re.IGNORECASE)

_FEMALE = re.compile(
    r"wife|girlfriend|mother|mom|mum|sister|daughter|aunt|niece|grandma|grandmother|landlady|frau|tochter|mutter|"
    r"schwester|"
    r"freundin|chefin|kollegin|mujer|esposa|novia|hija|madre|hermana|jefa|amiga|prima|abuela|"
    r"老婆|妻子|太太|女朋友|女儿|闺女|妈|母亲|姐姐|妹妹|妹|奶奶|外婆|岳母|婆婆|媳妇|孙女|侄女",
    re.IGNORECASE,
)
_MALE = re.compile(
    r"husband|boyfriend|father|dad|brother|\bsons?\b|uncle|nephew|grandpa|grandfather|landlord|mann|sohn|vater|bruder|"
    r"\bfreund\b|\bchef\b|marido|esposo|novio|hijo|padre|hermano|jefe|amigo|primo|abuelo|"
    r"老公|丈夫|男朋友|儿子|爸|父亲|哥哥|弟弟|爷爷|外公|岳父|公公|女婿|孙子|侄子",
    re.IGNORECASE,
)
_ANIMAL = re.compile(r"dog|cat|kitten|puppy|horse|rabbit|parrot|hund|katze|perr|gat[oa]|狗|猫", re.IGNORECASE)
_MANY = re.compile(
    r"(?:sons|daughters|kids|twins|children|parents|brothers|sisters|siblings|friends|colleagues|dogs|cats|neighbou?rs|"
    r"grandparents|kinder|eltern|hij[oa]s|padres|herman[oa]s|amig[oa]s|perr[oa]s|gat[oa]s)$|爸妈|父母",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"\b(?:my|our|mein\w{0,2}|unser\w{0,2}|mi|nuestr[oa])\s+(?:[\w-]+\s+){0,2}?(?P<relation>"
    + lexicon.RELATIONS.pattern
    + r")(?:,?\s+(?P<name>(?-i:[A-ZÀ-Þ])[\wÀ-ÿ-]+))?",
    re.IGNORECASE,
)
_OWN_ZH = re.compile(
    r"(?:我们?|咱们?)(?:家)?(?:\d+|[一二两三四五六七八九十]+)?岁?(?:个月)?大?的?(?:同?[大小老])?(?P<relation>"
    + lexicon.RELATIONS_ZH.pattern
    + r")(?:(?<=妈)妈|(?<=爸)爸)?"
)
_SOMEBODY_ELSE = re.compile(
    r"\b(?:(?:his|her|their|a|an|the|your) (?:\w+ )?(?:"
    + lexicon.RELATIONS.pattern
    + r"|man|woman|girl|boy|guy|doctor|teacher|nurse)|"
    r"(?-i:[A-ZÀ-Þ])[\wÀ-ÿ-]+['’]s (?:" + lexicon.RELATIONS.pattern + r"))\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:^|[.!?;,]\s+|\b(?:and|with|met|saw|for|to|from|by)\s+)(?!(?:I|My|We|Our|The|She|He|It|This|That|What|How|"
    r"Can|Could|Please|And|But|So|"
    r"When|Where|Who|Is|Are|Do|Does|In|On|At)\b)(?P<name>[A-ZÀ-Þ][a-zà-ÿ]+)(?=\s+(?:is|has|was|says?|said|told|likes|"
    r"loves|lives|works|"
    r"and|will|can|wants|needs|thinks|came|went|gave|called)\b)"
)
_BARE_NAME = re.compile(
    r"(?:\b(?:for|with|about|by|named|called|tell|ask|told|visit|see|meet|met|is|and)\s+|(?:^|"
    r"[.!?;,]\s+))(?P<name>[A-ZÀ-Þ][a-zà-ÿ]{2,})"
    r"(?=['’]s\s+\w|\s+(?:is|has|was|loves|likes|can|needs|wants|will|keeps|started|turned|hates|does|cannot)\b|"
    r"[.,;?!]|$|\s+(?:and|please)\b)"
)
_NO_NAME = re.compile(
    r"(?:She|This|That|What|Here|There|How|Who|Let|Where|When|Today|Yes|Yeah|Okay|Thanks|Thank|Hello|Please|Sorry|"
    r"Great|Good|"
    r"Everything|Nothing|Something|They|You|Mine|Not|Just|Sure|Fine|Well|Also|Now|Then|Maybe|English|German|French|"
    r"Spanish|Chinese|"
    r"Python|Java|Rust|Excel|Word)$|" + lexicon.MONTH_NAMES.pattern + "|" + lexicon.WEEKDAYS.pattern,
    re.IGNORECASE,
)
_THERE = re.compile(
    r"\b(?:liv(?:e|es|ed|ing)|work(?:s|ed|ing)?|stud(?:y|ies|ied|ying)|mov(?:e|es|ed|ing)|born|grew up|stay(?:s|ed|"
    r"ing)?|"
    r"go(?:es|ing)?|went|been|travel(?:s|l?ing|l?ed)?|fly(?:ing)?|flies|was|am|own(?:s|ed)?|have|"
    r"has)\b[^.?!;]{0,30}?\b(there)\b"
    r"(?! (?:is|are|was|were)\b)",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b(?:in|to|at|from|near|around|"
    r"of)\s+(?P<place>(?-i:[A-ZÀ-Þ])[\wÀ-ÿ-]+(?:\s(?-i:[A-ZÀ-Þ])[\wÀ-ÿ-]+)?)",
    re.IGNORECASE,
)
_NO_PLACE = re.compile(
    lexicon.MONTH_NAMES.pattern + "|" + lexicon.WEEKDAYS.pattern + r"|(?:I|English|German|French|Spanish|Chinese|"
    r"Python|Java|Rust|Excel|Word)$",
    re.IGNORECASE,
)


def antecedent_of_head(statement: str, before: Sequence[str]) -> Antecedent | None:
    """Whom the pronoun means that the statement begins with; None without one, and in doubt.

    `before`: what the user said before it, oldest first; the last that speaks of anybody decides.
    """
    head = _HEAD_ZH.match(statement) or _HEAD.match(statement)
    if head is None or _speaks_of_somebody(head["lead"]):
        return None
    word = head["word"]
    if word.casefold() in ("sie", "er") and not _GERMAN_SINGULAR.match(statement, head.start("word")):
        return None
    for text in reversed(before):
        near = text[-REACH_CHARACTERS:]
        people = _people(near)
        if people or _SOMEBODY_ELSE.search(near):
            return _only(word, near, people)
        names = {found["name"] for found in _BARE_NAME.finditer(near) if not _NO_NAME.match(found["name"])}
        if names:
            is_one = len(names) == 1 and _KIND_OF[word.casefold()] is not _Kind.THEY
            return Antecedent(word, names.pop(), is_own=False) if is_one else None
    return None


def points_back(sentence: str) -> bool:
    """Whether it begins with a pronoun that somebody outside of it has to be found for."""
    head = _HEAD_ZH.match(sentence) or _HEAD.match(sentence)
    return head is not None and not _speaks_of_somebody(head["lead"])


def _speaks_of_somebody(lead: str) -> bool:
    return bool(lexicon.RELATIONS.search(lead) or lexicon.RELATIONS_ZH.search(lead) or _CAPITAL.search(lead))


def antecedent_of_there(statement: str, before: Sequence[str]) -> Antecedent | None:
    """The one place that the user spoke of in the last message that speaks of any; None in doubt."""
    there = _THERE.search(statement)
    if there is None or _places(statement):
        return None
    for text in reversed(before):
        places = _places(text)
        if places:
            return Antecedent(there.group(1), places.pop()) if len(places) == 1 else None
    return None


def _places(text: str) -> set[str]:
    return {place for found in _PLACE.finditer(text) if not _NO_PLACE.match(place := found.group("place"))}


def _people(text: str) -> list[re.Match[str]]:
    return [*_OWN.finditer(text), *_OWN_ZH.finditer(text)]


def _only(word: str, text: str, people: Sequence[re.Match[str]]) -> Antecedent | None:
    """The one that the word can mean, if there is just one and nobody else was brought up."""
    kind = _KIND_OF[word.casefold()]
    fitting = [person for person in people if _fits(person.group("relation"), kind)]
    relations = {person.group("relation").casefold() for person in fitting}
    if len(relations) != 1 or _SOMEBODY_ELSE.search(text):
        return None
    names = {name.casefold() for person in fitting if (name := person.groupdict().get("name"))}
    others = {found.group("name").casefold() for found in _NAMED.finditer(text, fitting[0].start())}
    if len(names) > 1 or others - names:
        return None
    fullest = max(fitting, key=lambda person: len(person.group()))
    return Antecedent(word, fullest.group().strip())


def _fits(relation: str, kind: _Kind) -> bool:
    if _MANY.search(relation) or kind is _Kind.THEY:
        return bool(_MANY.search(relation)) and kind is _Kind.THEY
    if kind is _Kind.IT:
        return bool(_ANIMAL.search(relation))
    return not (_MALE if kind is _Kind.SHE else _FEMALE).search(relation)


__all__ = ["Antecedent", "antecedent_of_head", "antecedent_of_there", "points_back"]
