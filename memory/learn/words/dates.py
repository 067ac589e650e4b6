"""Relative dates pinned to the day they were said: "next Friday" becomes a date that stays right.

Only what is certain is pinned. "next Friday" on a Monday may mean two days, so it is left alone. Days are counted in
UTC: near midnight a user far east or west may be a day off. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

IGNORE_CASE = re.IGNORECASE

PINNED_MAX = 3  # of one statement: more would drown it

_WEEKDAYS = {
    "mon": 0, "tue": 1, "wed": 2, "thu": 3, "fri": 4, "sat": 5, "sun": 6,
    "一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6, "末": 5,
    "mo": 0, "di": 1, "mi": 2, "do": 3, "fr": 4, "sa": 5, "so": 6,
    "lun": 0, "mar": 1, "mié": 2, "jue": 3, "vie": 4, "sáb": 5, "dom": 6,
}  # fmt: skip
_DAYS = {
    "today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1, "the day after tomorrow": 2,
    "the day before yesterday": -2, "last night": -1,
    "heute": 0, "morgen": 1, "übermorgen": 2, "gestern": -1, "vorgestern": -2, "hoy": 0, "pasado mañana": 2,
    "ayer": -1, "anteayer": -2,
    "今天": 0, "今晚": 0, "明天": 1, "明晚": 1, "后天": 2, "大后天": 3, "昨天": -1, "昨晚": -1, "前天": -2,
}  # fmt: skip
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10,
    "ein": 1, "einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "un": 1, "una": 1, "dos": 2, "tres": 3,
    "cuatro": 4,
    "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10,
}  # fmt: skip
_NUMBER = r"\d{1,3}|" + "|".join(sorted((n for n in _NUMBERS if n.isascii()), key=len, reverse=True))
_MONTHS_EN = "January February March April May June July August September October November December".split()
_WEEKDAY_EN = r"(mon|tue|wed|thu|fri|sat|sun)(?:day|sday|nesday|rsday|urday)"
_WEEKDAY_DE = r"(mo|di|mi|do|fr|sa|so)(?:ntag|enstag|ttwoch|nnerstag|eitag|mstag|nntag)"
_WEEKDAY_ES = r"(lun|mar|mié|jue|vie|sáb|dom)(?:es|tes|rcoles|ves|rnes|ado|ingo)"


def pinned(text: str, said_at: float) -> list[tuple[str, str]]:
    """Each certain relative date in `text` with what it means: `[("next Friday", "2025-03-14")]`, at most three.

    `said_at` in Unix seconds. A month or a year that is meant as a whole reads "2025-08" or "2026".
    """
    said = datetime.fromtimestamp(said_at, UTC).date()
    found: dict[int, tuple[int, str, str]] = {}
    for pattern, resolve in _RULES:
        for match in pattern.finditer(text):
            meaning = resolve(match, said)
            overlaps = any(start < match.end() and match.start() < end for start, (end, _, _) in found.items())
            if meaning and not overlaps:
                found[match.start()] = (match.end(), match.group().strip(), meaning)
    return [(phrase, meaning) for _, (_, phrase, meaning) in sorted(found.items())][:PINNED_MAX]


def _day(match: re.Match[str], said: date) -> str:
    return str(said + timedelta(days=_DAYS[match.group().lower()]))


def _coming_or_past_weekday(match: re.Match[str], said: date) -> str:
    """ "this Friday" is in this calendar week; "next" and "last" only count where both common readings agree."""
    which, weekday = match.group(1).lower(), _WEEKDAYS[match.group(2).lower()[:3]]
    return _weekday(which, weekday, said)


def _weekday(which: str, weekday: int, said: date) -> str:
    monday = said - timedelta(days=said.weekday())
    if which in ("this", "diesen", "este", "这", "本"):
        return str(monday + timedelta(days=weekday))
    if which in ("next", "nächsten", "kommenden", "próximo"):
        coming = said + timedelta(days=(weekday - said.weekday() - 1) % 7 + 1)
        following = monday + timedelta(days=7 + weekday)
        return str(coming) if coming == following else ""
    if which in ("last", "letzten", "pasado"):
        latest = said - timedelta(days=(said.weekday() - weekday - 1) % 7 + 1)
        previous = monday + timedelta(days=weekday - 7)
        return str(latest) if latest == previous else ""
    return ""


def _weekday_de(match: re.Match[str], said: date) -> str:
    return _weekday(match.group(1).lower(), _WEEKDAYS[match.group(2).lower()], said)


def _weekday_zh(match: re.Match[str], said: date) -> str:
    weeks = {"这": 0, "本": 0, "上": -1}.get(match.group(1), len(match.group(1)))  # 下 is one week on, 下下 two
    if match.group(2) == "末":
        return ""
    monday = said - timedelta(days=said.weekday())
    return str(monday + timedelta(days=7 * weeks + _WEEKDAYS[match.group(2)]))


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word.lower()]


def _ago_or_ahead(match: re.Match[str], said: date) -> str:
    groups = match.groupdict()
    unit = groups["unit"].lower()
    sign = -1 if groups.get("ago") or match.group().lower().startswith(("vor", "hace")) else 1
    number = _count(groups["number"])
    if unit[0] in "dt天" or unit == "día":
        return str(said + timedelta(days=sign * number))
    if unit[0] in "ws周" or "星期" in unit:
        return str(said + timedelta(weeks=sign * number))
    return _month(said, sign * number)


def _month(said: date, months: int) -> str:
    index = said.year * 12 + said.month - 1 + months
    return f"{index // 12:04d}-{index % 12 + 1:02d}"


def _whole_period(match: re.Match[str], said: date) -> str:
    which, unit = (group.lower() for group in match.groups() if group)
    step = {"next": 1, "last": -1, "this": 0}.get(which, 1 if which[0] in "nkp下明" else -1)
    if which in ("pasado", "pasada"):
        step = -1
    if unit[0] in "yj年a":
        return str(said.year + step)
    if unit[0] == "m" or "月" in unit:
        return _month(said, step)
    monday = said - timedelta(days=said.weekday()) + timedelta(weeks=step)
    return f"week of {monday}"


def _year_zh(match: re.Match[str], said: date) -> str:
    year = said.year + {"前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}[match.group(1)]
    month = _chinese_number(match.group(2)) if match.group(2) else 0
    return f"{year}-{month:02d}" if 1 <= month <= 12 else str(year)


def _month_zh(match: re.Match[str], said: date) -> str:
    month = _month(said, {"上": -1, "下": 1, "这": 0}[match.group(1)])
    day = _chinese_number(match.group(2)) if match.group(2) else 0
    return f"{month}-{day:02d}" if 1 <= day <= 31 else month


def _chinese_number(word: str) -> int:
    """1 to 99 in digits or Chinese numerals, else 0."""
    if word.isdigit():
        return int(word)
    tens, ten, ones = word.rpartition("十")
    if ten:
        return (_NUMBERS.get(tens, 1) * 10) + _NUMBERS.get(ones, 0)
    return _NUMBERS.get(word, 0)


def _this_month_name(match: re.Match[str], said: date) -> str:
    number = next(i for i, name in enumerate(_MONTHS_EN, 1) if name.lower().startswith(match.group(2).lower()[:3]))
    which = match.group(1).lower()
    if which == "last":
        return f"{said.year - (number >= said.month)}-{number:02d}"
    return f"{said.year + (number < said.month)}-{number:02d}"


_MONTH_EN = "|".join(_MONTHS_EN)
_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], str]], ...] = (
    (re.compile(r"\b(?:the day after tomorrow|the day before yesterday)\b|大后天|\bpasado mañana\b", IGNORE_CASE),
        _day),
    (re.compile(r"\b(?:today|tonight|tomorrow|yesterday|last night|heute|übermorgen|gestern|vorgestern|hoy|ayer|"
                r"anteayer)\b|"
                r"今天|今晚|明天|明晚|后天|昨天|昨晚|前天", IGNORE_CASE), _day),
    (re.compile(r"(?<!\w)Morgen(?= (?:muss|habe|fahre|fliege|gehe|kommt|ziehe|ist)\b)|\bmorgen(?= (?:früh|abend|"
                r"nachmittag|mittag)\b)", IGNORE_CASE), _day),
    (re.compile(rf"\b(this|next|last) {_WEEKDAY_EN}\b", IGNORE_CASE), _coming_or_past_weekday),
    (re.compile(rf"\b(diesen|nächsten|kommenden|letzten) {_WEEKDAY_DE}\b", IGNORE_CASE), _weekday_de),
    (re.compile(rf"\b(este|próximo) {_WEEKDAY_ES}\b", IGNORE_CASE), _coming_or_past_weekday),
    (re.compile(r"(这|本|上|下{1,2})个?(?:周|星期|礼拜)([一二三四五六日天末])"), _weekday_zh),
    (re.compile(rf"\bin (?P<number>{_NUMBER}) (?P<unit>days?|weeks?|months?)\b", IGNORE_CASE), _ago_or_ahead),
    (re.compile(rf"\b(?P<number>{_NUMBER}) (?P<unit>days?|weeks?|months?) (?P<ago>ago)\b", IGNORE_CASE), _ago_or_ahead),
    (re.compile(rf"\b(?:in|vor) (?P<number>{_NUMBER}) (?P<unit>Tag(?:en)?|Wochen?|Monat(?:en)?)\b", IGNORE_CASE),
        _ago_or_ahead),
    (re.compile(rf"\b(?:dentro de|hace) (?P<number>{_NUMBER}) (?P<unit>días?|semanas?|mes(?:es)?)\b", IGNORE_CASE),
        _ago_or_ahead),
    (re.compile(r"\b(next|last) (week)\b|\b(this|next|last) (month|year)\b", IGNORE_CASE), _whole_period),
    (re.compile(r"\b(nächsten?|nächstes|letzten?|letztes) (Woche|Monat|Jahr)\b", IGNORE_CASE), _whole_period),
    (re.compile(r"(前年|去年|今年|明年|后年)(?:([一二三四五六七八九十]{1,2}|\d{1,2})月)?"), _year_zh),
    (re.compile(r"(上|下|这)个?月(?:([一二三四五六七八九十]{1,3}|\d{1,2})[号日])?"), _month_zh),
    (re.compile(rf"\b(this|next|last) ({_MONTH_EN})\b", IGNORE_CASE), _this_month_name),
)  # fmt: skip
