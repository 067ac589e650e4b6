"""Which plan a cancellation means: "my trip to Oslo is off" leaves the trip to Rome alone.

A plan falls only if both name the same: a place, a person, a day, or a word that tells one dentist from another. A
cancellation that names nothing but the sort of plan ("my trip is off") can mean any; whether there is only one is for
the caller to see. Where that is unsure the plan stays. Pure.
"""

from __future__ import annotations

import re

from memory.learn.words import change_words as words
from memory.learn.words.lexicon import CITIES_ZH
from memory.learn.words.persons import relations_of
from memory.learn.words.terms import terms
from memory.learn.words.values import differ_in_measure, differ_in_name, names_of, values_of

_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_REASON = re.compile(
    r"\b(?:because|due to|since|wegen|weil|porque|debido)\b.*|因为.*|由于.*", re.IGNORECASE | re.DOTALL
)
_CALLED_OFF = re.compile(
    r"(?:^|[,;.!:]\s+)(?:(?:ok(?:ay)?|right|please|let['’]s|so|well)[,\s]+)*"
    r"(?:scrap|ditch|bin|scratch|forget(?: about)?|streich|vergiss|olvida) (?:the |our |my )?"
    r"(?P<name>(?-i:[A-ZÀ-Þ])[\w-]+)(?= (?:trip|flight|plan|weekend|holiday|idea|then|because)\b|\s*[,.;!]|\s*$)",
    re.IGNORECASE,
)
_BEHIND = re.compile(r"\b(?:visited|travell?ed|flew|went|was|were|loved|been)\b|去过", re.IGNORECASE)
_INSTEAD = re.compile(
    r"(?:,|\b(?:and|but|then|und|y)\b) (?:\w+ ){0,3}?(?:start\w*|began|switch\w*|took up|now|take|drink|use|nehme|"
    r"tomo|empec[ée])\b.*|(?:改|换)[^，。；]{0,3}",
    re.IGNORECASE | re.DOTALL,
)
_SORTS_ZH = re.compile(
    "旅行|旅游|之旅|出差|会议|开会|会面|预约|预订|预定|订|约|航班|机票|演唱会|聚会|活动|安排|计划|去|取消|已经|都"
)
# Words of a cancellation that name no plan.
_EMPTY = terms(
    "unfortunately sadly sorry got get have had been all after because it plans planned book booked booking schedule "
    "scheduled our tickets ticket leider schade lamentablemente us they airline company hotel organiser organizer "
    "decided decide finally again just already said told"
)


def is_of_plan(clause: str, text: str) -> bool:
    """Whether `text`, which says that some plan is off, may mean the plan that `clause` tells."""
    old, new = values_of(clause), values_of(text)
    if old.months and new.months and old.months.isdisjoint(new.months):
        return False
    if differ_in_name(new, old) or differ_in_measure(new, old):
        return False
    named = _named(text)
    return not named or bool(named & _named(clause))


def names_called_off(text: str) -> frozenset[str]:
    """The places of "scrap Lisbon" and "let's forget about Lisbon": what they were to be is in what was said before."""
    return frozenset(match["name"].casefold() for match in _CALLED_OFF.finditer(text))


def is_called_off(clause: str, known: str, text: str) -> bool:
    """Whether `clause` of `known` tells of the journey that `text` drops by its name.

    "We fly on 11 October" does, beside "packing list for Lisbon", but "we fly to Graz" does not.
    """
    off = names_called_off(text)
    if not off & names_of(known) or not words.TRAVEL.search(known) or _BEHIND.search(known):
        return False
    if relations_of(known) - relations_of(text):
        return False
    names = names_of(clause)
    return bool(off & names) or (not names and bool(words.TRAVEL.search(clause)))


def is_trip_moved(clause: str, text: str) -> bool:
    """Whether both tell of a journey to one place, in two months: for a `text` which says that something moved."""
    if not (words.TRAVEL.search(clause) and words.TRAVEL.search(text)):
        return False
    old, new = values_of(clause), values_of(text)
    if not (old.months and new.months and old.months.isdisjoint(new.months)):
        return False
    places_zh = set(CITIES_ZH.findall(clause)) & set(CITIES_ZH.findall(text))
    return bool(places_zh or (old.names & new.names and not differ_in_name(new, old)))


def without_reason(text: str) -> str:
    """What `text` says without saying why, or what comes instead: "I stopped tea because of the caffeine"."""
    return _INSTEAD.sub(" ", _REASON.sub(" ", text))


def names_no_plan(text: str) -> bool:
    """Whether it says that something is off without saying which of its sort."""
    return bool(words.CANCELLED.search(text)) and not _named(text) and not values_of(text).months


def _named(text: str) -> frozenset[str]:
    """What tells this plan from others of its sort."""
    bare = words.CANCELLED.sub(" ", _REASON.sub(" ", text))
    if _IDEOGRAPH.search(text):
        return terms(_SORTS_ZH.sub(" ", bare))
    return terms(words.PLANS.sub(" ", bare)) - _EMPTY


__all__ = ["is_called_off", "is_of_plan", "is_trip_moved", "names_called_off", "names_no_plan", "without_reason"]
