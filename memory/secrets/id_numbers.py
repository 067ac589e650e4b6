"""Finds numbers of cards, bank accounts and people, by their written form and their check digits.

One number in ten passes a check digit by chance, so the number must also have a typical written form, or a label in its
sentence. Telephone numbers must never match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module, resources

import msgspec
import phonenumbers
from stdnum import iban, luhn

from memory.secrets.plain_text import PlainText
from memory.secrets.secret_classes import SecretClass, Span
from memory.secrets.vocabulary import LabelMatches
from memory.typed import from_toml

GROUPS_MAX = 10  # groups of characters that one number is written in; an IBAN of 34 characters has nine
SHAPES_KNOWN_MAX = 4_096
CHARACTERS_MIN = 8  # of a number without a label
LEAD_CHARACTERS_MAX = 7  # of letters before the first digit
IBAN_CHARACTERS = range(15, 35)
CARD_LENGTHS = {"2": (16,), "3": (14, 15, 16), "4": (16, 19), "5": (16,), "6": (16, 17, 18, 19)}  # by the first digit
CARD_DIGITS = range(14, 20)
CARD_GROUPS = ((4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3))
TWO_SERIES_MIN, TWO_SERIES_MAX = "2221", "2720"  # the first digits of cards that begin with 2; 2019 is a year
PHONE_REGIONS = ("US", "GB", "DE", "ES", "CN")

_DIGITS = r"\d[\dA-Za-z]*(?:%s[\dA-Z]+(?![^\W_])){0,9}"
_FROM_DIGIT = re.compile(_DIGITS % r"(?: ?[-./_|·•] ?| |\n(?=\d))")
NUMBER = re.compile(r"(?:[A-Z]{1,4}[ -]|[A-Za-z]{0,6})" + _DIGITS % "[ ./_-]")
_LEAD = re.compile(r"(?<![\w+@./-])(?:[A-Z]{2} |[A-Za-z]{0,6})$")
_GROUP = re.compile(r"[^\W_]+")


class NumberKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of national id. `check`: a module of python-stdnum. In a form, `d` stands for a digit and `L` for a
    letter: a number in an `unmistakable` form always matches, one in a `labelled` form only next to a label."""

    secret_class: SecretClass = msgspec.field(name="class")
    check: str = ""
    unmistakable: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()


class _NumberFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: tuple[NumberKind, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """One written form of a kind of number."""

    secret_class: SecretClass
    is_valid: Callable[[str], bool]
    needs_label: bool


def number_spans(plain: PlainText, labels: LabelMatches) -> Iterator[Span]:
    """Unordered; may overlap."""
    for match in _FROM_DIGIT.finditer(plain.text):
        lead = _LEAD.search(plain.text, max(0, match.start() - LEAD_CHARACTERS_MAX), match.start())
        if lead and match.end() - match.start() + len(lead[0]) >= CHARACTERS_MIN:
            groups = [group.span() for group in _GROUP.finditer(plain.text, lead.start(), match.end())][:GROUPS_MAX]
            yield from _in_groups(plain, labels, groups)


def _in_groups(plain: PlainText, labels: LabelMatches, groups: list[tuple[int, int]]) -> Iterator[Span]:
    """The first and longest sequence of groups that is a valid number, and those after it."""
    parts = [_form_of(plain.text[start:end]) for start, end in groups]
    first = 0
    while first < len(groups):
        for last in range(len(groups) - 1, first - 1, -1):
            start, end = groups[first][0], groups[last][1]
            shape = " ".join(parts[first : last + 1])
            kind = _class_of(plain, labels, start, end, shape) if _may_be_number(shape) else None
            if kind:
                yield start, end, kind
                first = last
                break
        first += 1


@lru_cache(SHAPES_KNOWN_MAX)
def _may_be_number(shape: str) -> bool:
    """Whether groups of this shape may be one of the numbers that are known here."""
    count = len(shape) - shape.count(" ")
    is_iban = count in IBAN_CHARACTERS and shape.replace(" ", "").startswith("LLdd")
    return is_iban or (count in CARD_DIGITS and "L" not in shape) or shape in _shapes()


def _class_of(plain: PlainText, labels: LabelMatches, start: int, end: int, shape: str) -> SecretClass | None:
    written, sizes = plain.text[start:end], tuple(map(len, shape.split(" ")))

    def is_labelled(secret_class: SecretClass) -> bool:
        return labels.has(secret_class, *plain.sentence(start, end))

    if sum(sizes) in IBAN_CHARACTERS and written[:2].isalpha() and written[2:4].isdigit() and _is_iban(written):
        return SecretClass.BANK_ACCOUNT
    digits = "".join(c for c in written if c.isdigit())
    if len(digits) == sum(sizes) in _card_lengths(digits):
        signs = luhn.is_valid(digits) + (sizes in CARD_GROUPS)
        if signs == 2 or (signs and is_labelled(SecretClass.CARD_NUMBER)):
            return SecretClass.CARD_NUMBER if len(set(digits)) > 1 else None

    for form in forms().get(_form_of(written), ()):
        if not form.needs_label and form.is_valid(written):
            is_other = labels.is_numbered(plain, start) and not is_labelled(form.secret_class)
            return None if is_other else form.secret_class
    for form in _shapes().get(shape, ()):
        if is_labelled(form.secret_class) and form.is_valid("".join(_GROUP.findall(written))):
            return None if is_phone_number(written) else form.secret_class
    return None


def _card_lengths(digits: str) -> tuple[int, ...]:
    is_year = digits[:1] == "2" and not TWO_SERIES_MIN <= digits[:4] <= TWO_SERIES_MAX
    return () if is_year else CARD_LENGTHS.get(digits[:1], ())


def _form_of(written: str) -> str:
    return "".join("d" if c.isdigit() else "L" if c.isalpha() else c for c in written)


def _shape_of(form: str) -> str:
    """Its groups, however they are separated."""
    return " ".join(_GROUP.findall(form))


def _is_iban(written: str) -> bool:
    code = "".join(c for c in written if c.isalnum()).upper()
    if not code.isascii() or int("".join(str(int(c, 36)) for c in code[4:] + code[:4])) % 97 != 1:
        return False
    return bool(iban.is_valid(code, check_country=False))


def is_phone_number(written: str) -> bool:
    """Whether it is a telephone number of one of `PHONE_REGIONS`, or has an international prefix."""
    strict = phonenumbers.Leniency.STRICT_GROUPING
    return any(
        phonenumbers.PhoneNumberMatcher(written, region, leniency=strict, max_tries=2).has_next()
        for region in PHONE_REGIONS
    )


@cache
def forms() -> dict[str, tuple[Form, ...]]:
    """Forms by their pattern."""
    text = (resources.files("memory.secrets") / "id_numbers.toml").read_bytes()
    known: dict[str, tuple[Form, ...]] = {}
    for kind in from_toml(text, _NumberFile).number:
        is_valid = _check(kind.check)
        for needs_label, written in ((False, kind.unmistakable), (True, kind.labelled)):
            for form in written:
                known[form] = (*known.get(form, ()), Form(kind.secret_class, is_valid, needs_label))
    return known


@cache
def _shapes() -> dict[str, tuple[Form, ...]]:
    """Forms by their groups: with a label, other separators than usual will do."""
    known: dict[str, tuple[Form, ...]] = {}
    for written, found in forms().items():
        known[_shape_of(written)] = (*known.get(_shape_of(written), ()), *found)
    return known


def _check(name: str) -> Callable[[str], bool]:
    if not name:
        return bool
    validate = import_module(f"stdnum.{name}").is_valid

    def is_valid(number: str) -> bool:
        try:
            return bool(validate(number))
        except KeyError:  # python-stdnum lacks some Chinese counties; check digit and date were valid
            return True

    return is_valid
