"""Where a text holds secrets: keys, tokens, passwords, and the numbers of cards, accounts and people.

Shapes of vendors' tokens come from detect-secrets, which keeps them up to date; check-summed numbers, the spoken forms
("my password is …", "密码是…") and everything Chinese are ours, for it knows source code, not prose. It finds where a
token begins but not always where it ends, so a hit takes the whole run of token characters with it. When in doubt about
what stands behind "password is", it is one. Pure, and linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import TypeAlias

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


Span: TypeAlias = tuple[int, int, SecretClass]
"""Start, end, class."""

_HEAD_CHARACTERS = 600  # of one run of token characters that are looked into; a longer run is a file, not a token
_IGNORE_CASE = re.IGNORECASE

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

_BEARER = re.compile(
    r"\b(?:bearer|basic|authorization:\s*\w+|token|apikey|api-key)\s+(?P<value>[A-Za-z0-9_\-./+=~]{16,})", _IGNORE_CASE
)
_URL_PASSWORD = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,80}:(?P<value>[^\s/@][^\s@]{0,200})(?=@)", _IGNORE_CASE
)
_ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9])[\w.-]{0,40}(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|"
    r"credentials?|auth|session[_-]?id)[\w.-]{0,20}[\"']?\s*(?:=|:=|=>|:)\s*[\"']?(?P<value>[^\s\"',;，。；]{4,200})",
    _IGNORE_CASE,
)

# In prose: the word, what it is for, what links it to the value, and the value.
_FOR = r"(?:\s+(?:for|of|to|on|at|in|del?|de la|zu[mr]?|für|von)(?:\s+[\w'’-]+){1,4}?)?"
_LINK = r"\s*(?:is now|is still|is|are|was|=|:|：|ist|lautet|es|sigue siendo|→|->)\s*:?\s*[\"'“‘]?"
_NAMES_OF_ONE = (
    r"(?:[\w-]{0,30}(?:password|passwort|kennwort)s?|pass ?words?|pass ?codes?|passwd|pwd?|contraseñas?|clave|"
    r"mot de passe|"
    r"pin(?: ?code| number| nummer)?|puk|cvc2?|cvv2?|cvn|otp|tan|"
    r"(?:security|one-time|2fa|verification|sms|backup|recovery|reset|login|unlock) (?:codes?|keys?|passwords?)|"
    r"(?:totp|2fa|otp) (?:secret|key|seed))"
)
_PASSWORD = re.compile(
    rf"(?<!\w){_NAMES_OF_ONE}{_FOR}{_LINK}(?P<value>\d{{2,4}}[ -]\d{{2,4}}(?!\d)|[^\s\"'”’,;，。；]{{3,128}})"
    r"(?P<more>(?:,? (?:and )?[\w-]*\d[\w-]*\d)*)",
    _IGNORE_CASE,
)
_PASSWORD_SHORT = re.compile(r"(?<!\w)(?:pass|pw|login)\s*[:=]\s*(?P<value>[^\s\"'”’,;，。；]{3,128})", _IGNORE_CASE)
_PASSWORD_BARE = re.compile(
    r"(?<!\w)(?:pin|puk|cvc2?|cvv2?|cvn|otp|tan|passcode|password|pwd|(?:totp|2fa|otp)(?: secret| key| code)?)\s+"
    r"(?P<value>(?=\S*\d)[^\s,;，。]{3,128})",
    _IGNORE_CASE,
)
_PASSPHRASE = re.compile(
    rf"(?<!\w)(?:pass ?phrase|(?:seed|recovery|backup|mnemonic|wallet) (?:phrase|words?)|mnemonic){_FOR}{_LINK}"
    r"(?P<value>[^,;.\n，。；]{3,300})|助记词(?:是|为|[:：])?\s*(?P<words>[^,;\n，。；]{3,300})",
    _IGNORE_CASE,
)
_API_KEY = re.compile(
    rf"(?<!\w)(?:api[ -]?keys?|secret keys?|access keys?|(?:access |secret |auth |bearer )?tokens?){_FOR}{_LINK}"
    r"(?P<value>[^\s\"'”’,;，。；]{6,256})",
    _IGNORE_CASE,
)
_PASSWORD_ZH = re.compile(
    r"(?:密码|口令|验证码|校验码|动态码|安全码|密钥|秘钥|令牌|PIN码?)\s*(?:现在)?(?:是|为|改成了?|改为|"
    r"[:：=])?\s*[“\"']?"
    r"(?P<value>[A-Za-z0-9!@#$%^&*()_+\-=.?~]{4,128})|(?:口令|暗号)(?:是|为|"
    r"[:：])\s*[“\"']?(?P<words>[\u3400-\u9fff]{2,12})",
    _IGNORE_CASE,
)
_NEXT_CLAUSE = re.compile(r"\s+(?:and|but|und|y)\s+(?:i|the|my|it|we|ich|mi)\b", _IGNORE_CASE)
# What is said of passwords rather than as one: "my password is too weak", "… was changed".
_PLAIN = frozenset(
    "a an the my your our their his her its not no never always still also just only too very so really quite "
    "rather wrong right correct incorrect weak strong long short old new same different expired expiring valid "
    "invalid safe secure easy hard difficult simple impossible required missing gone lost stolen leaked public "
    "private empty blank broken fine ok good bad changed set reset stored saved kept written managed generated "
    "encrypted hashed rotated shared known being unknown on in at under with from by for to case-sensitive needed "
    "used unique random hidden visible working what why falsch richtig zu sehr nicht kein sicher unsicher lang "
    "kurz alt neu weg abgelaufen im auf muy incorrecta correcta débil segura larga corta vieja nueva en la el una "
    "un".split()
)

_CARD = re.compile(r"(?<![\d.])(?:\d[ -]?){12,18}\d(?![\d.]\d|\d)")
_CARD_NAMED = re.compile(
    r"(?:\b(?:card|visa|mastercard|amex|kreditkarte\w*|kartennummer|tarjeta)\b|银行卡|信用卡|卡号)[^\d\n]{0,24}"
    r"(?P<value>(?:\d[ -]?){12,18}\d)(?!\d)",
    _IGNORE_CASE,
)
_ACCOUNT_NAMED = re.compile(
    r"(?:\b(?:account|acct|routing|konto|cuenta)\s*(?:number|no\.?|nummer|nr\.?|#|número)|\bkontonummer|账号|账户)"
    r"\s*(?:is|ist|es|是|为|[:：])?\s*(?P<value>\d[\d -]{6,24}\d)",
    _IGNORE_CASE,
)
_PERSON_NAMED = re.compile(
    r"(?:\b(?:passport|driver['’]?s licen[cs]e|driving licen[cs]e|social security|ssn|national id|id card|tax id|"
    r"dni|nie|"
    r"steuer-?id(?:nummer)?|steuernummer|personalausweis\w*|reisepass\w*|pasaporte|nhs)|护照|驾照|身份证|社保)"
    r"(?:[ -]?(?:number|no\.?|nummer|nr\.?|#|número|号码?|卡号))?\s*(?:is|ist|lautet|es|是|为|[:：])?\s*"
    r"(?P<value>(?=(?:[A-Za-z-]{0,6}\d){5})[A-Za-z0-9][A-Za-z0-9-]{5,24})",
    _IGNORE_CASE,
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Za-z0-9]{1,4}){3,8}(?![A-Za-z0-9])")
_CHINESE_ID = re.compile(r"(?<!\d)[1-9]\d{5}(?:18|19|20)\d{2}[01]\d[0-3]\d{4}[\dXx](?!\d)")
_SSN = re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)

_NAMED = (
    (_BEARER, SecretClass.TOKEN),
    (_URL_PASSWORD, SecretClass.PASSWORD),
    (_ASSIGNED, SecretClass.TOKEN),
    (_PASSWORD, SecretClass.PASSWORD),
    (_PASSWORD_SHORT, SecretClass.PASSWORD),
    (_PASSWORD_BARE, SecretClass.PASSWORD),
    (_PASSPHRASE, SecretClass.PASSWORD),
    (_API_KEY, SecretClass.API_KEY),
    (_PASSWORD_ZH, SecretClass.PASSWORD),
    (_CARD_NAMED, SecretClass.CARD_NUMBER),
    (_ACCOUNT_NAMED, SecretClass.BANK_ACCOUNT),
    (_PERSON_NAMED, SecretClass.NATIONAL_ID),
)


def secret_spans(text: str) -> Iterator[Span]:
    """Every secret, in no order; they may overlap."""
    for match in _PRIVATE_KEY.finditer(text):
        yield (*match.span(), SecretClass.PRIVATE_KEY)
    yield from _tokens(text)
    for pattern, kind in _NAMED:
        for match in pattern.finditer(text):
            yield from _named(match, pattern, kind)
    yield from _numbers(text)


def _named(match: re.Match[str], pattern: re.Pattern[str], kind: SecretClass) -> Iterator[Span]:
    """What stands behind a word such as "password", unless it is talk about it."""
    group = "value" if match["value"] is not None else "words"
    start, end = match.span(group)
    value = match[group].rstrip(".,;:，。 ")
    if not value or value.startswith(("[redacted", "[withheld")) or _is_talk(value, pattern):
        return
    if pattern is _PASSPHRASE:
        value = _NEXT_CLAUSE.split(value, maxsplit=1)[0]
    more = len(match["more"]) if pattern is _PASSWORD else 0
    yield start, (end + more if more else start + len(value)), kind


def _is_talk(value: str, pattern: re.Pattern[str]) -> bool:
    first = value.split()[0].strip("!?)\"'”’").casefold()
    is_word = first.isalpha()
    if pattern is _PASSPHRASE and len(value.split()) > 3:
        return False
    if pattern is _PASSWORD or pattern is _PASSPHRASE:
        return first in _PLAIN or (is_word and first.endswith(("ed", "ing", "able")))
    if pattern in (_ASSIGNED, _API_KEY):
        return is_word or not any(c.isdigit() for c in value)
    if pattern is _PASSWORD_ZH:
        return value.isalpha() and value.isascii()
    return False


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
