"""A value put right in the same chat: "hang on, it's four times", right after "I run three times a week".

Such a sentence says nothing by itself; with the statement before it, it says that statement anew. Only a value of the
same kind takes a value's place, and only where there is just one that it can mean. It must never guess: where that is
unsure both stay as they were said. Patterns, each linear in its text. Pure.
"""

from __future__ import annotations

import re

from memory.learn.words.lexicon import MONTH_NAMES, WEEKDAYS
from memory.learn.words.values import names_of

IGNORE_CASE = re.IGNORECASE

_AMENDS = re.compile(
    r"\s*(?:(?:hang on|hold on|wait|sorry|oops|whoops|no|correction|scratch that|my mistake|i mean|perdona|perdón|"
    r"espera|uy|warte|moment|entschuldigung|nein|ups)[\s,.!:…-]+)+"
    r"(?:it['’]s|it is|that['’]s|i meant|make (?:it|that)|son|es sind|es ist|das ist|ich meinte|es|quise decir)\s+"
    r"(?P<value>[^,.;!?]{1,40}?)(?:,? (?:and )?(?:not|nicht|no) (?P<wrong>[^,.;!?]{1,30}))?\s*(?:[,.;!]|$)|"
    "\\s*(?:等等|等一下|抱歉|不好意思)?[，,]?(?:[写说打记弄搞]错了|不对)[…，,。！\\s]*(?:应该)?是(?P<value_zh>[^，,。；！]{1,12})"
    "[，,]?不是(?P<wrong_zh>[^，,。；！]{1,12})",
    IGNORE_CASE,
)
_NUMBER = (
    r"(?:\d+(?:[.,]\d+)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|uno|dos|tres|cuatro|cinco|seis|"
    r"siete|ocho|nueve|diez|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn)"
)
_COUNT = re.compile(rf"(?<![\w.,]){_NUMBER}(?![\w:]|[.,]\d)", IGNORE_CASE)
_COUNTED = re.compile(rf"(?P<number>{_NUMBER})(?: (?P<unit>[^\W\d]+))?", IGNORE_CASE)
_NAME = re.compile(r"(?-i:[A-ZÀ-Þ])[\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+)?")


def is_amendment(text: str) -> bool:
    """Whether it only puts a value of something right that was said before it."""
    return _AMENDS.match(text) is not None


def amended(known: str, said: str) -> str:
    """The statement `known` with the value that `said` puts in the place of its own; "" where that is unsure."""
    match = _AMENDS.match(said)
    if match is None:
        return ""
    value = (match["value"] or match["value_zh"]).strip()
    wrong = (match["wrong"] or match["wrong_zh"] or "").strip().rstrip("的了")
    if wrong:
        return _with(known, re.compile(re.escape(wrong) if match["wrong_zh"] else rf"\b{re.escape(wrong)}\b"), value)
    counted = _COUNTED.fullmatch(value)
    if counted:
        unit = rf"(?= {re.escape(counted['unit'])}\b)" if counted["unit"] else ""
        return _with(known, re.compile(_COUNT.pattern + unit, IGNORE_CASE), counted["number"])
    return _with_kind(known, value)


def _with_kind(known: str, value: str) -> str:
    """A weekday for a weekday, a month for a month, a name for the only name."""
    bare = re.sub(r"^(?:on|in|at|am|im|el|en) ", "", value)
    for kind in (WEEKDAYS, re.compile(rf"\b{MONTH_NAMES.pattern}", IGNORE_CASE)):
        if kind.fullmatch(bare):
            return _with(known, kind, bare)
        if kind.search(bare):
            return ""
    names = names_of(known)
    if not _NAME.fullmatch(bare) or len(names) != 1:
        return ""
    return _with(known, re.compile(rf"(?<!\w){re.escape(next(iter(names)))}(?!\w)", IGNORE_CASE), bare)


def _with(known: str, old: re.Pattern[str], value: str) -> str:
    """`known` with `value` in the place of the only thing that `old` finds, or ""."""
    found = list(old.finditer(known))
    if len(found) != 1 or found[0].group().casefold() == value.casefold():
        return ""
    return known[: found[0].start()] + value + known[found[0].end() :]


__all__ = ["amended", "is_amendment"]
