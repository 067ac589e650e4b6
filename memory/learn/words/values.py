"""What a statement says that could have been otherwise: amounts, days, times, names. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.learn.words.lexicon import MONTH_NAMES, WEEKDAYS
from memory.learn.words.terms import terms

_NUMBER_WORDS = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "once": "1", "twice": "2", "ein": "1", "zwei": "2", "drei": "3", "vier": "4", "fünf": "5", "dos": "2",
    "tres": "3", "cuatro": "4", "cinco": "5",
}  # fmt: skip
_AMOUNT = re.compile(
    rf"(?<![\w.])([$€£¥]?)(\d+(?:[.,]\d+)*|(?:{'|'.join(_NUMBER_WORDS)})\b)\s*([A-Za-zÀ-ÿ%€]*)", re.IGNORECASE
)
_AMOUNT_ZH = re.compile(
    r"([一二三四五六七八九十百千两零\d.]+)(万|千|百|块|元|岁|公斤|公里|厘米|斤|分|个|次|毫升|升|米|小时|天|周|"
    r"年级|年|号|日|月|点|杯|瓶|包|支|根|片|粒|颗|碗|顿|节|门|套|辆|台|只|条|本|张|份|层|楼|克|位|间|件)"
)
_DIGITS_ZH = {"": 0, **{digit: value for value, digit in enumerate("一二三四五六七八九", start=1)}}
_MONTH = re.compile(rf"\b{MONTH_NAMES.pattern}", re.IGNORECASE)
_MONTH_ZH = re.compile("(1[0-2]|[1-9]|十[一二]|[一二三四五六七八九十])月")
_MONTH_STEMS = {
    "mär": "mar",
    "mai": "may",
    "okt": "oct",
    "dez": "dec",
    "ene": "jan",
    "abr": "apr",
    "ago": "aug",
    "dic": "dec",
}
_DAY = re.compile(
    rf"(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?({MONTH_NAMES.pattern})|"
    rf"({MONTH_NAMES.pattern})\s+(\d{{1,2}})(?:st|nd|rd|th)?\b",
    re.IGNORECASE,
)
_ISO_DAY = re.compile(r"\b(?:19|20)\d\d-\d\d(?:-\d\d)?\b")
_DAY_ZH = re.compile(r"[一二三四五六七八九十\d]{1,3}月[一二三四五六七八九十\d]{1,3}[号日]?")
_TIME = re.compile(
    r"\b\d{1,2}(?::\d\d)?\s?(?:am|pm|h|uhr)\b|\b\d{1,2}:\d\d\b|[一二三四五六七八九十两\d]{1,3}点半?", re.IGNORECASE
)
_NAME = re.compile(r"(?<![\w'’-])(?!I\b|I['’])[A-ZÀ-Þ][\wÀ-ÿ]+(?:-[\wÀ-ÿ]+)*")
_FIRST_WORDS = frozenset(
    "my our the a an i we he she it they this that these those her his their and but so for from since if when in on "
    "at "
    "to no not yes ok please also now today then there here oops sorry actually good company kitchen work "
    "mein meine unser unsere der die das ein eine für seit ich wir jetzt mi mis el la los las un una se voy".split()
)
_SIDE = re.compile(
    r"\b(?:my|our|the|his|her|their|your) (?:(?P<left>left)|(?P<right>right))[ -](?!now\b|to\b|away\b|about\b)[a-z]|"
    r"\b(?:(?P<left_de>link|izquierd)|(?P<right_de>recht|derech))(?:e[nrsm]?|[oa])\b|"
    "(?:(?P<left_zh>左)|(?P<right_zh>右))[边侧手脚腿膝肩眼耳臂胳肘腕踝髋]",
    re.IGNORECASE,
)
_LATIN_IN_CHINESE = re.compile(r"[A-Za-z][A-Za-z0-9.+-]{1,}")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Values:
    """By kind, each as a set of folded texts; `topic`: the terms that are no value."""

    amounts: dict[str, frozenset[str]]  # unit → amounts
    days: frozenset[str]
    weekdays: frozenset[str]
    times: frozenset[str]
    months: frozenset[str]  # also of the days
    names: frozenset[str]
    topic: frozenset[str]


def values_of(clause: str) -> Values:
    days = _days(clause)
    weekdays = frozenset(m.group().casefold().rstrip("s") for m in WEEKDAYS.finditer(clause))
    times = frozenset(m.group().casefold().replace(" ", "") for m in _TIME.finditer(clause))
    names = names_of(clause)
    bare = WEEKDAYS.sub(" ", MONTH_NAMES.sub(" ", _DAY_ZH.sub(" ", _TIME.sub(" ", _ISO_DAY.sub(" ", clause)))))
    amounts = _amounts(bare if not _IDEOGRAPH.search(clause) else _TIME.sub(" ", _DAY_ZH.sub(" ", clause)))
    topic = frozenset(t for t in terms(_AMOUNT_ZH.sub(" ", bare)) if not t[0].isdigit() and t[0] not in "$€£¥")
    return Values(amounts, days, weekdays, times, _months(clause), names, topic - frozenset(_NUMBER_WORDS))


def names_of(clause: str) -> frozenset[str]:
    """Words that look like names: capitals that no sentence start explains; Latin words among Chinese."""
    if _IDEOGRAPH.search(clause):
        return frozenset(m.group().casefold() for m in _LATIN_IN_CHINESE.finditer(clause))
    bare = WEEKDAYS.sub(" ", re.sub(rf"\b{MONTH_NAMES.pattern}", " ", clause, flags=re.IGNORECASE))
    return frozenset({m.group().casefold() for m in _NAME.finditer(bare)} - _FIRST_WORDS)


def named_in(clause: str) -> frozenset[str]:
    """The names, as terms."""
    return frozenset(term for name in names_of(clause) for term in terms(name))


def differ(newer: Values, older: Values) -> bool:
    """Whether both name a value of one kind, and not the same one."""
    return differ_in_measure(newer, older) or differ_in_name(newer, older)


def differ_in_name(newer: Values, older: Values) -> bool:
    """Whether each names something that the other does not."""
    return bool(newer.names - older.names and older.names - newer.names)


def differ_in_measure(newer: Values, older: Values) -> bool:
    """Whether both have a day, a weekday, a time, or an amount of one unit, and not the same one."""
    kinds = ((newer.days, older.days), (newer.weekdays, older.weekdays), (newer.times, older.times))
    if any(new and old and new.isdisjoint(old) for new, old in kinds):
        return True
    common_units = newer.amounts.keys() & older.amounts.keys() - {"year"}  # a year dates, it does not measure
    return any(newer.amounts[unit].isdisjoint(older.amounts[unit]) for unit in common_units)


def differ_in_side(newer: str, older: str) -> bool:
    """Whether one tells of the left one and the other of the right one: "my left knee", "my right knee"."""
    new, old = _sides(newer), _sides(older)
    return bool(new and old) and new.isdisjoint(old)


def _sides(text: str) -> frozenset[str]:
    found = (kind for match in _SIDE.finditer(text) for kind, word in match.groupdict().items() if word)
    return frozenset(kind.partition("_")[0] for kind in found)


def _days(clause: str) -> frozenset[str]:
    found = {m.group() for m in _DAY_ZH.finditer(clause)} | {m.group() for m in _ISO_DAY.finditer(clause)}
    for match in _DAY.finditer(clause):
        day, month = (match.group(1), match.group(2)) if match.group(1) else (match.group(4), match.group(3))
        found.add(f"{month[:3].casefold()} {int(day)}")
    return frozenset(found)


def _months(clause: str) -> frozenset[str]:
    latin = {_MONTH_STEMS.get(stem := m.group()[:3].casefold(), stem) for m in _MONTH.finditer(clause)}
    return frozenset(latin | {as_number(m.group(1)) for m in _MONTH_ZH.finditer(clause)})


def as_number(text: str) -> str:
    """The digits of a number up to 99 that is written in words, or the text as it is."""
    folded = _NUMBER_WORDS.get(text.casefold(), text)
    tens, ten, ones = folded.replace("两", "二").rpartition("十")
    if not all(part in _DIGITS_ZH for part in (tens, ones)) or not (ten or ones):
        return folded
    return str((_DIGITS_ZH.get(tens) or 1) * 10 * bool(ten) + _DIGITS_ZH[ones])


def _amounts(clause: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for sign, number, unit in _AMOUNT.findall(clause):
        amount = _NUMBER_WORDS.get(number.casefold(), number.replace(",", ""))
        found.setdefault(_unit(sign, amount, unit.casefold()), set()).add(
            amount + ("k" if unit.casefold() == "k" else "")
        )
    for number, unit in _AMOUNT_ZH.findall(clause):
        found.setdefault(unit, set()).add(number)
    return {unit: frozenset(amounts) for unit, amounts in found.items()}


def _unit(sign: str, amount: str, word: str) -> str:
    if sign or word in ("k", "euro", "euros", "dollars", "€", "eur", "usd", "pounds"):
        return "money"
    if not word or len(terms(word)) == 0:
        return "year" if re.fullmatch(r"(?:19|20)\d\d", amount) else "number"
    return word.rstrip("s")
