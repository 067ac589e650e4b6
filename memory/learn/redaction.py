"""Secrets taken out of a text before it is written anywhere: the turn log, memories, evidence.

A pure function that the observer and the REST shell call before the append, so that the raw secret is in no file.
Shapes of vendors' tokens come from detect-secrets, which keeps them up to date; the check-summed numbers, the spoken
forms ("my password is …", "密码是…") and everything Chinese are ours, for it knows source code, not prose. It finds
where a token begins but not always where it ends, so a hit takes the whole run of token characters with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType

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


class SecretClass(StrEnum):
    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105 (the name of a class of secrets)
    PASSWORD = "password"  # noqa: S105 (likewise)
    PRIVATE_KEY = "private_key"
    CARD_NUMBER = "card_number"
    BANK_ACCOUNT = "bank_account"
    NATIONAL_ID = "national_id"


class SecretPolicy(StrEnum):
    REDACT = "redact"  # a placeholder takes its place; what else the sentence says is learnt
    DROP = "drop"  # a placeholder takes its place, and nothing is learnt from the sentence
    ALLOW = "allow"


REDACT_ALL: Mapping[SecretClass, SecretPolicy] = MappingProxyType(dict.fromkeys(SecretClass, SecretPolicy.REDACT))
PLACEHOLDER = re.compile(r"\[(?P<how>redacted|withheld) [a-z ]{3,20}\]")

_TOKEN_CHARACTERS_MAX = (
    4_096  # of one run that is looked into: a longer one is a file, and replaced if its head is a token
)
_TOKEN_RUN = re.compile(r"[A-Za-z0-9_\-./+=:~%]{12,}")
_HEAD = 600

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_KEY_SHAPE = re.compile(
    r"(?:^|(?<=[=:/]))(?:sk|pk|rk|tok|key|api|ghp|gho|ghs|ghu|ghr|glpat|xox[abprs]|whsec|npm|hf|dop|shpat|lin|"
    r"sq0\w{3}|AKIA|ASIA|AIza|ya29|EAA|SG)"
    r"[-_.]?(?=[\w\-.]*\d)[A-Za-z0-9_\-./+=]{12,}"
)
_BEARER = re.compile(
    r"\b(?P<lead>(?:bearer|basic|authorization:\s*\w+|token|apikey|api-key)\s+)(?P<value>[A-Za-z0-9_\-./+=~]{16,})",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(
    r"(?P<lead>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,80}:)(?P<value>[^\s/@][^\s@]{0,200})(?=@)", re.IGNORECASE
)
_ASSIGNED = re.compile(
    r"(?P<lead>(?<![A-Za-z0-9])[\w.-]{0,40}(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|"
    r"private[_-]?key|credentials?|auth)[\w.-]{0,20}"
    r"[\"']?\s*(?:=|:=|=>|:)\s*[\"']?)(?P<value>[^\s\"',;，。；]{4,200})",
    re.IGNORECASE,
)
# In prose: the word, what links it to the value, and a value that could not be an ordinary word.
_NOUN = (
    r"(?:pass ?words?|pass ?phrases?|pass ?codes?|passwd|passwort|kennwort|contraseñas?|clave(?: de acceso)?|"
    r"mot de passe|"
    r"pin(?: ?code| number| nummer)?|puk|cvc2?|cvv2?|cvn|security code|otp|one-time (?:code|password)|2fa code|"
    r"verification code|sms code|"
    r"tan|api[ -]?keys?|secret keys?|access keys?|(?:access |secret |auth |bearer )tokens?)"
)
_LINK = (
    r"(?:\s+(?:for|of|to|del|de|de la|zu|für)\s+(?:\w+\s+){0,3}?\w+)?\s*(?:is now|is|was|=|:|ist|lautet|es|"
    r"sigue siendo|→|->|are)\s*:?\s*[\"'“‘]?"
)
_SPOKEN = re.compile(rf"(?P<lead>(?<!\w){_NOUN}{_LINK})(?P<value>[^\s\"'”’,;，。；]{{3,128}})", re.IGNORECASE)
_SPOKEN_BARE = re.compile(
    r"(?P<lead>(?<!\w)(?:pin|puk|cvc2?|cvv2?|cvn|otp|tan|passcode|password|pwd)\s+)(?P<value>\S*\d\S*)", re.IGNORECASE
)
_SPOKEN_ZH = re.compile(
    r"(?P<lead>(?:密码|口令|验证码|校验码|动态码|安全码|密钥|秘钥|令牌|PIN码?)\s*(?:现在)?(?:是|为|改成了?|改为|"
    r"[:：=])?\s*[“\"']?)"
    r"(?P<value>[A-Za-z0-9!@#$%^&*()_+\-=.?~]{4,128})",
    re.IGNORECASE,
)
_ORDINARY = re.compile(
    r"(?:[a-zà-ÿ'’]+|[A-ZÀ-Þ][a-zà-ÿ'’]*)[.!?)]?$"  # a word: "my password is hard", "my PIN entry pad is broken"
)
_CARD = re.compile(r"(?<![\d.])(?:\d[ -]?){12,18}\d(?![\d.]\d|\d)")
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Za-z0-9]{1,4}){3,8}(?![A-Za-z0-9])")
_CHINESE_ID = re.compile(r"(?<!\d)[1-9]\d{5}(?:18|19|20)\d{2}[01]\d[0-3]\d{4}[\dXx](?!\d)")
_SSN = re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def redact(text: str, policy: Mapping[SecretClass, SecretPolicy] = REDACT_ALL) -> str:
    """`text` with each secret replaced by "[redacted …]" (or "[withheld …]" where the policy is to drop).

    Redacting twice changes nothing. Text without secrets comes back as the same object.
    """
    spans = _merged(
        [(start, end, kind) for start, end, kind in _secrets(text) if policy.get(kind) is not SecretPolicy.ALLOW]
    )
    if not spans:
        return text
    parts: list[str] = []
    position = 0
    for start, end, kind in spans:
        how = "withheld" if policy.get(kind) is SecretPolicy.DROP else "redacted"
        parts += (text[position:start], f"[{how} {kind.value.replace('_', ' ')}]")
        position = end
    return "".join([*parts, text[position:]])


def _merged(spans: list[tuple[int, int, SecretClass]]) -> list[tuple[int, int, SecretClass]]:
    """In order, without overlap; overlapping ones become one."""
    merged: list[tuple[int, int, SecretClass]] = []
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if merged and start < merged[-1][1]:
            first, last, named = merged[-1]
            merged[-1] = (first, max(last, end), named)
        else:
            merged.append((start, end, kind))
    return merged


def _secrets(text: str) -> Iterator[tuple[int, int, SecretClass]]:
    for match in _PRIVATE_KEY.finditer(text):
        yield (*match.span(), SecretClass.PRIVATE_KEY)
    yield from _tokens(text)
    for pattern, kind in _VALUES:
        for match in pattern.finditer(text):
            if _could_be_secret(match, pattern):
                start, end = match.span("value")
                yield start, start + len(match["value"].rstrip(".,;:，。")) or end, kind
    yield from _numbers(text)


_VALUES = (
    (_BEARER, SecretClass.TOKEN),
    (_URL_PASSWORD, SecretClass.PASSWORD),
    (_ASSIGNED, SecretClass.TOKEN),
    (_SPOKEN, SecretClass.PASSWORD),
    (_SPOKEN_BARE, SecretClass.PASSWORD),
    (_SPOKEN_ZH, SecretClass.PASSWORD),
)


def _could_be_secret(match: re.Match[str], pattern: re.Pattern[str]) -> bool:
    value = match["value"]
    if PLACEHOLDER.match(match.string, match.start("value")):
        return False
    if pattern in (_SPOKEN, _ASSIGNED):
        is_last = not match.string[match.end() :].strip(" .!\n")
        return not _ORDINARY.match(value) or (
            is_last and pattern is _SPOKEN and len(value) >= 6 and _is_set_apart(match)
        )
    if pattern is _SPOKEN_ZH:
        return bool(re.search(r"\d", value)) or not value.isalpha()
    return True


def _is_set_apart(match: re.Match[str]) -> bool:
    """ "password: swordfish" names a word as the secret; "the password is wrong" does not."""
    return match["lead"].rstrip("\"'“‘ ").endswith((":", "="))


def _tokens(text: str) -> Iterator[tuple[int, int, SecretClass]]:
    for run in _TOKEN_RUN.finditer(text):
        head = run.group()[:_HEAD]
        if not any(c.isdigit() for c in head):
            continue
        start = _token_start(head)
        if start is not None:
            end = run.start() + len(run.group().rstrip("."))  # the sentence's own full stop
            yield run.start() + start, end, SecretClass.API_KEY


def _token_start(run: str) -> int | None:
    shape = _KEY_SHAPE.search(run)
    if shape:
        return shape.start()
    return next((match.start() for pattern in _vendor_patterns() if (match := pattern.search(run))), None)


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


def _numbers(text: str) -> Iterator[tuple[int, int, SecretClass]]:
    for match in _CHINESE_ID.finditer(text):
        if is_chinese_id(match.group()):
            yield (*match.span(), SecretClass.NATIONAL_ID)
    for match in _SSN.finditer(text):
        yield (*match.span(), SecretClass.NATIONAL_ID)
    for match in _CARD.finditer(text):
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
    """How many characters of `text` form an IBAN with a right check sum; 0 for none. Trailing words are left out."""
    for end in range(len(text), 14, -1):
        if text[end - 1] == " ":
            continue
        code = text[:end].replace(" ", "").upper()
        if 15 <= len(code) <= 34 and code.isalnum() and code.isascii():
            rearranged = code[4:] + code[:4]
            if int("".join(str(int(c, 36)) for c in rearranged)) % 97 == 1:
                return end
    return 0


def is_chinese_id(number: str) -> bool:
    """Whether 18 characters are a Chinese identity number with its right check character (GB 11643)."""
    total = sum(int(digit) * weight for digit, weight in zip(number[:17], _ID_WEIGHTS, strict=True))
    return "10X98765432"[total % 11] == number[17].upper()
