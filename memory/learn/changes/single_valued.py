"""Attributes that have one value at a time, however they are worded: where the user lives, when the stand-up is.

Only whether two clauses tell the same attribute in the same manner, never which of them holds: "my desk is by the
window" and "my desk is a gift" both do. Patterns and sets, no judgement of meaning. Pure.
"""

from __future__ import annotations

import re

from memory.learn.words import change_words as words
from memory.learn.words.lexicon import RELATIONS, RELATIONS_ZH
from memory.learn.words.terms import terms
from memory.learn.words.values import names_of, values_of

IGNORE_CASE = re.IGNORECASE

# What a person has one of. Each pattern finds the words that tell it.
_CLASSES = (
    words.DIET,
    re.compile(
        r"\b(?:i|we)(?:['’](?:m|re|ve))? (?:\w+ ){0,2}(?:live|living|reside|based|moved|rent|renting) "
        r"(?:\w+ )?(?:in|at|on|to|near|a|an)\b|"
        r"\b(?:i|we)(?:['’](?:m|re)| am| are) (?:\w+ )?in an? (?:\w+ )?(?:house|flat|apartment|studio|place)\b|"
        r"\b(?:ich|wir) (?:wohne|wohnen|lebe) (?:\w+ )?(?:in|bei|am|an|auf)\b|"
        r"\b(?:wohne|lebe) ich (?:\w+ )?(?:in|bei|am|an|auf)\b|\b(?:vivo|vivimos) (?:\w+ )?en\b|"
        r"我们?(?:家)?(?:现在)?(?:住(?!.{0,3}[楼层])|在.{1,8}租)",
        IGNORE_CASE,
    ),
    re.compile(
        r"\bi(?:['’]m| am)? (?:\w+ )?(?:work(?:ing)? (?:at|for|as)|employed (?:at|by)|hired by)\b|"
        r"\bmy (?:job|employer)\b|"
        r"\bi(?:['’]m| am) (?:\w+ )?an? (?:[\w-]+ ){1,3}(?:at|for|with) |"
        r"\bich (?:arbeite (?:bei|als)|bin bei)\b|\btrabajo (?:en|para|de|como)\b|"
        r"我(?:现在)?在.{1,12}(?:上班|工作|任职|做|当|教)",
        IGNORE_CASE,
    ),
    re.compile(
        r"\bi(?:['’]m| am)? (?:\w+ )?study(?:ing)? (?!in\b|at\b|for\b)|\bich studiere (?!in\b)|\bestudio (?!en\b)|"
        r"我(?:现在)?(?:在.{1,10})?(?:学的是|读的是|专业是)",
        IGNORE_CASE,
    ),
)
_NAMED_CLASSES = (
    re.compile(
        r"\b(?:i|we) (?:\w+ )?drive an?\b|\b(?:ich|wir) fahren? (?:jetzt )?eine?n?\b|\bconduzco un\b|我开的?是?(?!会)",
        IGNORE_CASE,
    ),
    re.compile(
        r"\bi (?:\w+ )?commute\b|"
        r"\bi (?:\w+ )?(?:cycle|walk|drive|bike|run|ride|go|take the \w+) (?:\w+ ){0,2}to (?:work|the office)\b|"
        r"我.{0,8}上班(?!的)",
        IGNORE_CASE,
    ),
    re.compile(r"\b(?:at|to) (?:[A-ZÀ-Þ][\w-]+ )+(?:School|College|Primary|Academy|University|Nursery)\b"),
)
# Who somebody is to the user: both have to name a person.
_ROLE = re.compile(
    r"\b(?P<role>manager|boss|supervisor|doctor|gp|dentist|therapist|coach|trainer|landlord|landlady|accountant|lawyer|"
    r"cleaner|hausarzt|hausärztin|zahnarzt|zahnärztin|vermieter(?:in)?|chefin?|médic[oa]|dentista|jef[ea])\b|"
    r"(?P<role_zh>组长|经理|老板|主管|牙医|医生|教练|房东|班主任)",
    IGNORE_CASE,
)
_NAMED = re.compile(
    r"(?:\bis|\bist|\bes|\bcalled|\bnamed|[:,])\s+(?:now |jetzt |ahora )?"
    r"(?:(?:mr|mrs|ms|prof|frau|herr|dra?)\b\.? ?)*"
    r"(?P<name>(?-i:[A-ZÀ-Þ])\w+)",
    IGNORE_CASE,
)
_SAME_ROLES = {
    "boss": "manager", "supervisor": "manager", "gp": "doctor", "landlady": "landlord", "trainer": "coach",
    "hausärztin": "hausarzt", "zahnärztin": "zahnarzt", "chefin": "chef", "老板": "经理", "主管": "经理",
}  # fmt: skip
_HAVE_ONE = re.compile(
    r"\bmy (?P<thing>gym|bank|phone|laptop|car|bike|email|e-mail|number|birthday|height|weight|shoe size|salary|"
    r"rent)\b",
    IGNORE_CASE,
)
_BEING = "is|are|was|ist|sind|es|son|está|están|meets|meet|takes place"
_TELLS = re.compile(
    rf"\s*(?P<head>\S.{{1,60}}?)\s+(?P<verb>{_BEING}|sits?|stands?|lies|hangs?|costs?|starts?|begins?|ends?|opens?|"
    r"closes?|goes out|go out|runs?|liegt|steht|hängt|kostet|beginnt|endet|cuesta|empieza|termina)\s+"
    r"(?:(?:now|due|scheduled|jetzt|ahora)\s+)*(?P<value>.+)",
    IGNORE_CASE,
)
_TELLS_ZH = re.compile(r"(?P<head>[^，。；是在定]{1,20})(?P<verb>是|在|定在|放在)(?P<value>[^，。；]+)")
_OWNED = re.compile(
    r"\s*(?:my|our|his|her|their|\S+['’]s|mein\w*|unser\w*|mis?|nuestr[oa]s?)\b|.*[我他她]", IGNORE_CASE
)
_OF = re.compile(r"\s+(?:of|for|von|für|de|del|para)\s+", IGNORE_CASE)
_CLOCK = re.compile(r"(?:at|um|a las) \d", IGNORE_CASE)
_BEGINS = re.compile(
    r"(?P<place>at|in|on|by|with|from|behind|near|under|over|next to|am|im|bei|mit|hinter|en|con|detrás)\b|"
    r"(?P<article>an?|eine?n?|une?|una?)\b|"
    r"(?P<name>(?:the )?(?-i:(?:Dr|Mr|Mrs|Ms|Prof|Frau|Herr)\.? )?(?-i:[A-ZÀ-Þ])\w)",
    IGNORE_CASE,
)
_ALIKE = frozenset(_BEING.split("|"))


def tell_one_attribute(newer: str, older: str) -> bool:
    """Whether two clauses tell the value of one attribute, so that they cannot both hold unless they say the same."""
    if words.LONG_AGO.search(newer):
        return False
    if any(single.search(newer) and single.search(older) for single in (*_CLASSES, *_NAMED_CLASSES)):
        return True
    return _name_one_role(newer, older) or _have_one(newer, older) or _say_what_it_is(newer, older)


def _name_one_role(newer: str, older: str) -> bool:
    """ "My manager is Fiona", "new boss: Rakesh"; but not "my manager is on holiday"."""
    role = _role(newer)
    if not role or role != _role(older):
        return False
    named = _NAMED.search(newer)
    return not role.isascii() or (named is not None and named["name"].casefold() not in names_of(older))


def _role(text: str) -> str:
    match = _ROLE.search(text)
    role = (match["role"] or match["role_zh"]).casefold() if match else ""
    return _SAME_ROLES.get(role, role)


def _have_one(newer: str, older: str) -> bool:
    """ "My rent is 900", "my rent went up to 950": the thing is named, and both name a value of it."""
    new, old = _HAVE_ONE.search(newer), _HAVE_ONE.search(older)
    if new is None or old is None or new["thing"].casefold() != old["thing"].casefold():
        return False
    return bool(_manner(newer[new.end() :].lstrip(" is")) & _manner(older[old.end() :].lstrip(" is")))


def _say_what_it_is(newer: str, older: str) -> bool:
    """ "The router sits in the hall", "the router sits in the attic": one thing, one verb, one manner of value."""
    new, old = _told(newer), _told(older)
    if new is None or old is None or _verb(new) != _verb(old):
        return False
    if not _are_one_thing(new["head"], old["head"]):
        return False
    manners = _manner(new["value"]) & _manner(old["value"])
    is_somebody = RELATIONS.search(new["head"]) or RELATIONS_ZH.search(new["head"])
    return bool(manners - {"article", "zh"} if is_somebody else manners)  # a nurse may be a mother, too


def _told(clause: str) -> re.Match[str] | None:
    return _TELLS.match(clause) or _TELLS_ZH.match(clause)


def _verb(told: re.Match[str]) -> str:
    verb = told["verb"].casefold()
    return "is" if verb in _ALIKE else verb.rstrip("s")


def _are_one_thing(new: str, old: str) -> bool:
    """The same words; or the one names the other with what it is of, as "the deadline for the thesis" does."""
    first, second = terms(new), terms(old)
    if not first or not second:
        return False
    shorter, longer = (new, old) if len(first) <= len(second) else (old, new)
    if first == second or terms(shorter) in [terms(part) for part in _OF.split(longer)]:
        return True
    return first < second and not _OWNED.match(new)  # "the venue", once "our wedding venue"


def _manner(value: str) -> set[str]:
    """How a value is told: in a place, at a time, as a thing, by a name. Nothing where that cannot be seen."""
    if re.search("[\u3400-\u9fff]", value):
        return {"zh的" if value.endswith("的") else "zh楼" if re.search("[楼层]$", value) else "zh"}
    told = values_of(value)
    kinds = {"day": told.days, "time": told.times, "weekday": told.weekdays}
    found = {kind for kind, values in kinds.items() if values} | {f"amount {unit}" for unit in told.amounts}
    if found & kinds.keys() or _CLOCK.match(value):
        return found | ({"time"} if _CLOCK.match(value) else set())  # "on Monday" is no place
    begins = _BEGINS.match(value)
    return found if begins is None else found | {str(begins.lastgroup)}


__all__ = ["tell_one_attribute"]
