"""Classifies the form of a value: chosen as a secret, random, or an ordinary word, number or name.

Considers characters only, not the context. Whether it is redacted is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from itertools import pairwise
from operator import ne

KEY_CHARACTERS_MIN = 10
KEY_DISTINCT_MIN = 7
DIGIT_KEY_MIN = 20  # digits only: no number that people use is longer
MADE_CHARACTERS_MIN = 5
SECRET_CHARACTERS_MIN = 4
QUANTITY_DIGITS_MAX = 3  # "12-character"; with more digits it is rather a password: "1984-orwell"
SUFFIX_CHARACTERS = range(2, 5)  # of a file name or a domain
COUNTED_CHARACTERS_MIN = 8  # in order; of random ones so many never stand so
GROUP_CHARACTERS = range(4, 9)  # of what is written three times in a row
NAME_CHARACTERS_MIN = 3  # of a function

_SYMBOLS = frozenset("!@#$%^&*+=~?|\\_§")
_EDGES = "!?.,;:'\"*()[]{}<>-_"
_NUMERIC = re.compile(r"\W?v?\d+(?:[.,:/-]\d+)*(?:\W|(-?)([a-z가-힣]+))?")  # a date, a version, an amount
_MASK = re.compile(r"(.)\1{4,}")
_CAMEL = re.compile("[a-z][A-Z]")
_ASCII_KINDS = {
    code: ("d" if chr(code).isdigit() else "u" if chr(code).isupper() else "l") if chr(code).isalnum() else None
    for code in range(128)
}
_GAPS = ("[]", "()", "{}", "<>", "%%", "__")  # around placeholders in templates
_PATH_STARTS = ("/", "./", "../", "~/", "www.")


def is_masked(value: str) -> bool:
    """Whether it is masked or truncated: "*****", "xxxxx", "abc…"."""
    return "..." in value or "…" in value or bool(_MASK.search(value))


def is_made_up(value: str) -> bool:
    """Whether it is what people write in place of a random key: "1234567890", "abcdefghij", "1234-1234-1234-…"."""
    codes = [ord(character) for character in value.lower()]
    length = 1
    for code, following in pairwise(codes):
        length = length + 1 if following == code + 1 else 1
        if length >= COUNTED_CHARACTERS_MIN:
            return True
    return any(
        value.startswith(value[at : at + size] * 2, at + size)
        for size in GROUP_CHARACTERS
        for at in range(len(value) - 3 * size + 1)
    )


def is_expression(value: str) -> bool:
    """Whether it is source code or a template placeholder rather than a value: "input(", "${KEY}", "<token>"."""
    if value[:1] + value[-1:] in _GAPS or value.startswith(("{", "<", "${", "$(", "%(")):
        return True
    name = value.replace("[", "(").partition("(")[0].lstrip("$@")
    is_call = "(" in value or "[" in value
    is_closed = value.count("(") == value.count(")") and value.count("[") == value.count("]")
    is_name = len(name) >= NAME_CHARACTERS_MIN and _is_name(name) and not any(c.isdigit() for c in name)
    is_cut_off = name == name.lower() and not any(c.isdigit() for c in value)  # by white space within the brackets
    return is_call and is_name and (is_closed or is_cut_off)


def is_ordinary(value: str, units: AbstractSet[str]) -> bool:
    """Whether it is common in prose although it has digits: a date, a quantity, an address, a file name."""
    numeric = _NUMERIC.fullmatch(value.lower())
    if numeric:
        unit, digits = numeric[2], sum(character.isdigit() for character in value)
        return not unit or unit in units or (bool(numeric[1]) and digits <= QUANTITY_DIGITS_MAX)
    if "://" in value:
        return True
    stem, _, suffix = value.rpartition(".")
    has_suffix = bool(stem) and len(suffix) in SUFFIX_CHARACTERS and suffix.isalpha() and suffix == suffix.lower()
    is_path = value.startswith(_PATH_STARTS) and value[1:2].isalnum()
    return (has_suffix or is_path) and _is_name(value.replace("/", "").replace("@", "").replace("-", ""))


def _is_name(value: str) -> bool:
    rest = value.replace(".", "").replace("_", "")
    return rest.isalnum() and rest.isascii()


def is_made(value: str) -> bool:
    """Whether it mixes letters and digits: not an ordinary word, but possibly a name."""
    if len(value) < MADE_CHARACTERS_MIN or value.isalpha():
        return False
    has_letter = any(character.isalpha() for character in value)
    return has_letter and any(character.isdigit() for character in value)


def value_shape(value: str) -> tuple[frozenset[str], int]:
    """Its kinds of characters, and the number of digits if it has no letters."""
    kinds = frozenset("d" if c.isdigit() else "l" if c.isalpha() else c for c in value)
    return kinds, 0 if "l" in kinds else sum(c.isdigit() for c in value)


def looks_secret(value: str, function_words: AbstractSet[str]) -> bool:
    """Whether it would not occur in prose: digits, capitals or symbols inside, or a chain of words."""
    core = value.strip(_EDGES)
    has_letter = any(character.isalpha() for character in core)
    if any(character.isdigit() for character in core):
        return len(value) >= SECRET_CHARACTERS_MIN and (has_letter or not _SYMBOLS.isdisjoint(core))
    if not has_letter or len(core) < SECRET_CHARACTERS_MIN:
        return False
    if not _SYMBOLS.isdisjoint(core):
        return "_" not in core or core.lower() != core
    parts = core.lower().split("-")
    is_chain = len(parts) > 2 and all(part.isalpha() for part in parts) and function_words.isdisjoint(parts)
    return is_chain or bool(_CAMEL.search(core))


def is_random(value: str, characters_min: int = KEY_CHARACTERS_MIN) -> bool:
    """Whether letters and digits alternate as in random text, or it has more digits than any ordinary number."""
    kinds = _kinds(value)
    digits = kinds.count("d")
    if len(kinds) < characters_min or digits < 2 or len(set(value.lower())) < KEY_DISTINCT_MIN:
        return False
    if digits == len(kinds):
        return len(kinds) >= DIGIT_KEY_MIN
    changes: int = sum(map(ne, kinds, kinds[1:]))
    return changes > 2 and changes * 5 >= len(kinds)


def _kinds(value: str) -> str:
    """One of d, u and l for each digit, capital and other letter."""
    if value.isascii():
        return value.translate(_ASCII_KINDS)
    return "".join("d" if c.isdigit() else "u" if c.isupper() else "l" for c in value if c.isalnum())
