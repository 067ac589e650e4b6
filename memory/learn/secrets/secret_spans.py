"""Where a text holds secrets: keys, tokens, passwords, and the numbers of cards, accounts and people.

Shapes of vendors' tokens come from detect-secrets, which keeps them up to date; check-summed numbers, the spoken forms
("my password is …", "密码是…") and everything Chinese are ours, for it knows source code, not prose. It finds where a
token begins but not always where it ends, so a hit takes the whole run of token characters with it. When in doubt about
what stands behind "password is", it is one. Pure, and linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from detect_secrets.plugins import (
    aws,
    azure_storage_key,
    discord,
    github_token,
    gitlab_token,
    jwt,
    mailchimp,
    openai,
    pypi_token,
    sendgrid,
    slack,
    square_oauth,
    stripe,
    telegram_token,
    twilio,
)
from detect_secrets.plugins.base import RegexBasedDetector

from memory.learn.secrets.cued_secrets import cued_spans
from memory.learn.secrets.secret_classes import SecretClass, Span
from memory.learn.secrets.spoken_secrets import spoken_spans

_HEAD_CHARACTERS = 600  # of one run of token characters that are looked into; a longer run is a file, not a token

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_TOKEN_RUN = re.compile(r"[A-Za-z0-9_\-./+=:~%]{12,}")
_KEY_SHAPE = re.compile(
    r"(?:^|(?<=[=:/]))(?:sk|pk|rk|tok|key|api|ghp|gho|ghs|ghu|ghr|glpat|xox[abprs]|whsec|npm|hf|dop|shpat|lin|"
    r"sq0\w{3}|AKIA|ASIA|AIza|ya29|EAA|SG)[-_.]?(?=[\w\-.]*\d)[A-Za-z0-9_\-./+=]{12,}"
)
_MIXED = re.compile(r"(?<![\w/.@:+%=-])[A-Za-z0-9_-]{20,80}(?![\w/@+=]|\.\w)")

_CARD = re.compile(r"(?<![\d.])(?:\d[ -]?){12,18}\d(?![\d.]\d|\d)")
_CARD_DOTTED = re.compile(r"(?<![\d.])\d{4}(?P<dot>[._/])\d{4}(?P=dot)\d{4}(?P=dot)\d{1,7}(?!\d|\.\d)")
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{1,4}){3,8}")
_IBAN_LENGTHS = {  # by country; a check sum alone is right once in 97 times, and small letters are nearly all words
    country: int(length)
    for length, countries in (
        ("15", "NO"), ("16", "BE"), ("18", "DK FI FO GL NL SD"), ("19", "MK SI"), ("20", "AT BA EE KZ LT LU XK"),
        ("21", "CH CR HR LI LV"), ("22", "BG BH DE GB GE IE ME RS VA"), ("23", "AE GI IL IQ OM SO TL"),
        ("24", "AD CZ ES MD PK RO SA SE SK TN VG"), ("25", "LY PT ST"), ("26", "IS TR"),
        ("27", "BI DJ FR GR IT MC MR SM"), ("28", "AL AZ BY CY DO GT HU LB NI PL SV"), ("29", "BR EG PS QA UA"),
        ("30", "JO KW MU YE"), ("31", "MT SC"), ("32", "LC"), ("33", "RU"),
    )
    for country in countries.split()
}  # fmt: skip
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=_.:~-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")
_FULL_WIDTH = {ord("０") + digit: ord("0") + digit for digit in range(10)}
_CHINESE_ID = re.compile(r"(?<!\d)[1-9]\d{5}(?:18|19|20)\d{2}[01]\d[0-3]\d{4}[\dXx](?!\d)")
_SSN = re.compile(r"(?<![\d-])(?<!\d )(?!000|666|9\d\d)\d{3}(?P<gap>[- ])(?!00)\d{2}(?P=gap)(?!0000)\d{4}(?![\d-]| \d)")
_CPF = re.compile(r"(?<![\d.])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\d-])")
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def secret_spans(text: str) -> Iterator[Span]:
    """Every secret, in no order; they may overlap."""
    if not text.isascii():
        text = text.translate(_FULL_WIDTH)
    for match in _PRIVATE_KEY.finditer(text):
        yield (*match.span(), SecretClass.PRIVATE_KEY)
    yield from _tokens(text)
    yield from spoken_spans(text)
    yield from cued_spans(text)
    yield from _numbers(text)


def _tokens(text: str) -> Iterator[Span]:
    for run in _TOKEN_RUN.finditer(text):
        head = run.group()[:_HEAD_CHARACTERS]
        if not any(c in "0123456789_-" for c in head):
            continue
        start = _token_start(head)
        if start is not None:
            end = run.start() + len(run.group().rstrip("."))  # the full stop is the sentence's own
            yield run.start() + start, end, SecretClass.API_KEY
    for match in _MIXED.finditer(text):
        if _is_mixed(match.group()):
            yield (*match.span(), SecretClass.TOKEN)
    for match in _AWS_SECRET.finditer(text):
        if _is_aws_secret(match.group()):
            yield (*match.span(), SecretClass.API_KEY)


def _token_start(run: str) -> int | None:
    shape = _KEY_SHAPE.search(run)
    if shape:
        return shape.start()
    return next((match.start() for pattern in _vendor_patterns() if (match := pattern.search(run))), None)


def _is_mixed(run: str) -> bool:
    """Capitals, small letters and digits all over the place: no word, no number, no name of a file."""
    kinds = [("d" if c.isdigit() else "u" if c.isupper() else "l") for c in run if c.isalnum()]
    changes = sum(a != b for a, b in pairwise(kinds))
    return min(kinds.count("d"), kinds.count("u"), kinds.count("l")) >= 3 and changes * 3 >= len(kinds)


def _is_aws_secret(run: str) -> bool:
    """Capitals and small letters all over the place, with a digit: no path, and no hexadecimal sum."""
    letters = [c for c in run if c.isalpha()]
    changes = sum(a.isupper() != b.isupper() for a, b in pairwise(letters))
    return any(c.isdigit() for c in run) and changes * 4 >= len(run)


@cache
def _vendor_patterns() -> tuple[re.Pattern[str], ...]:
    detectors: tuple[type[RegexBasedDetector], ...] = (
        aws.AWSKeyDetector,
        azure_storage_key.AzureStorageKeyDetector,
        discord.DiscordBotTokenDetector,
        github_token.GitHubTokenDetector,
        gitlab_token.GitLabTokenDetector,
        jwt.JwtTokenDetector,
        mailchimp.MailchimpDetector,
        openai.OpenAIDetector,
        pypi_token.PypiTokenDetector,
        sendgrid.SendGridDetector,
        slack.SlackDetector,
        square_oauth.SquareOAuthDetector,
        stripe.StripeDetector,
        telegram_token.TelegramBotTokenDetector,
        twilio.TwilioKeyDetector,
    )
    return tuple(pattern for detector in detectors for pattern in detector().denylist)


def _numbers(text: str) -> Iterator[Span]:
    for shape, is_one in ((_CHINESE_ID, is_chinese_id), (_CPF, is_brazilian_id), (_SSN, bool)):
        for match in shape.finditer(text):
            if is_one(match.group()):
                yield (*match.span(), SecretClass.NATIONAL_ID)
    for pattern in (_CARD, _CARD_DOTTED):
        for match in pattern.finditer(text):
            if passes_luhn(match.group()):
                yield (*match.span(), SecretClass.CARD_NUMBER)
    for match in _IBAN.finditer(text):
        length = iban_length(match.group())
        if length:
            yield match.start(), match.start() + length, SecretClass.BANK_ACCOUNT


def passes_luhn(number: str) -> bool:
    """Whether 13 to 19 digits (blanks and hyphens aside) end in their Luhn check digit; a run of one digit does not."""
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [d * 2 - 9 if d > 4 else d * 2 for d in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


def iban_length(text: str) -> int:
    """How many characters of `text` form an IBAN with a right check sum; 0 for none. Trailing words are left out.

    Without capitals it has to be of a country whose length is known.
    """
    length = _IBAN_LENGTHS.get(text[:2].upper(), 0)
    if not length and not text[:2].isupper():
        return 0
    for end in range(len(text), 14, -1):
        if text[end - 1] == " ":
            continue
        code = text[:end].replace(" ", "").upper()
        if (len(code) == length if length else 15 <= len(code) <= 34) and code.isalnum() and code.isascii():
            rearranged = code[4:] + code[:4]
            if int("".join(str(int(c, 36)) for c in rearranged)) % 97 == 1:
                return end
    return 0


def is_chinese_id(number: str) -> bool:
    """Whether 18 characters are a Chinese identity number with its right check character (GB 11643)."""
    total = sum(int(digit) * weight for digit, weight in zip(number[:17], _ID_WEIGHTS, strict=True))
    return "10X98765432"[total % 11] == number[17].upper()


def is_brazilian_id(number: str) -> bool:
    """Whether 11 digits (full stops and hyphens aside) are a Brazilian CPF with its two right check digits."""
    digits = [int(c) for c in number if c.isdigit()]
    if len(digits) != 11 or len(set(digits)) == 1:
        return False
    for length in (9, 10):
        total = sum(digit * weight for digit, weight in zip(digits[:length], range(length + 1, 1, -1), strict=True))
        if total * 10 % 11 % 10 != digits[length]:
            return False
    return True
