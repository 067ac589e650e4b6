"""Whether what the user says to eat breaks the diet that they told of before: "I'm vegetarian", "I eat meat again".

Only what the user eats, and as a habit: not a husband's steak, not vegan sausages, nothing that is denied or only
wished for. A diet that merely differs ("vegan", once "vegetarian") is for the other rules. Patterns only. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.learn.words import change_words as words
from memory.learn.words.persons import relations_of

_EATING = (
    r"(?:\bi(?: \w+)? (?:eat|have|drink|cook)|\bi(?:['’]m| am)(?: \w+)? (?:eating|drinking)|\besse ich|"
    r"\bich (?:esse|trinke)|\bcomo|\bbebo)(?: \w+){0,3}? (?:\w+ (?:and|und|y|or) )?"
    r"(?<!vegan )(?<!vegano )(?<!vegane )(?<!fake )(?<!based )(?<!free )"
)
_NOT_OF_IT = r"(?! (?:substitutes?|alternatives?|replacements?|ersatz|free|vegan\w*))"
_EATING_ZH = "我[^，,。；不没戒]{0,6}[吃喝][^，,。；素]{0,3}"
EATS = re.compile(rf"{_EATING}|{_EATING_ZH}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Diet:
    told: re.Pattern[str]
    broken: re.Pattern[str]


def _diet(told: str, foods: str, foods_zh: str) -> _Diet:
    broken = rf"{_EATING}(?:{foods})\b{_NOT_OF_IT}|{_EATING_ZH}(?:{foods_zh})"
    return _Diet(re.compile(told, re.IGNORECASE), re.compile(broken, re.IGNORECASE))


_IS = r"\b(?:i(?:['’]m| am)(?: \w+)?|ich bin|soy|i(?:['’]ve| have) been) (?:an? )?(?:strict )?"
_MEAT = "meat|beef|pork|chicken|steaks?|bacon|lamb|burgers?|fleisch|hähnchen|carne|pollo|jamón"
_DIETS = (
    _diet(
        rf"{_IS}(?:vegetarian|vegetarier\w*|vegetarian[oa])\b|我(?:现在)?(?:吃素|是?素食)",
        f"{_MEAT}|fish",
        "肉|牛排|鱼",
    ),
    _diet(rf"{_IS}pescatarian\b", _MEAT, "肉|牛排"),
    _diet(
        rf"{_IS}(?:vegan(?:er\w*)?|vegan[oa])\b|我(?:现在)?是?(?:纯素|全素)",
        rf"{_MEAT}|fish|eggs?|cheese|dairy|fisch|eier|käse|pescado|huevos?|queso",
        "肉|鱼|蛋|奶酪",
    ),
    _diet(
        r"\b(?:on|doing|mache|hago)(?: a| strict)? (?:keto|low[- ]carb)\b|\bi eat (?:keto|low[- ]carb)\b|"
        r"我.{0,6}(?:生酮|低碳)",
        "bread|pasta|rice|potatoes|sugar|carbs|brot|nudeln|pan|arroz",
        "米饭|面包|面条|主食|碳水",
    ),
    _diet(
        r"\bi (?:don['’]?t|do not|never) (?:drink|touch)(?: any)? alcohol\b|"
        r"\bi(?:['’]m| am) (?:a )?(?:teetotal\w*|sober)\b|我.{0,3}(?:戒酒|不喝酒)",
        "wine|beer|alcohol|whisky|wein|bier|vino|cerveza",
        "酒",
    ),
)
DIET = re.compile("|".join(diet.told.pattern for diet in _DIETS), re.IGNORECASE)


def breaks_diet(newer: str, older: str) -> bool:
    """Whether `older` tells of a diet, and `newer` of eating what it forbids."""
    if any(unreal.search(newer) for unreal in (words.NEGATED, words.WEIGHED, words.LONG_AGO)):
        return False
    if relations_of(newer):
        return False  # "my husband eats meat"
    return any(diet.told.search(older) and diet.broken.search(newer) for diet in _DIETS)


__all__ = ["DIET", "EATS", "breaks_diet"]
