"""Secrets that nothing names, known by what is talked of: a text about logging in, and a word made like a password.

"The network is Foxglove, you get in with marmalade-on-toast-77", "punch in 7741", twelve bare words about a wallet. A
cue has to stand near, or it is an ordinary name or number and must stay whole. Pure, and linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.learn.secret_classes import SecretClass, Span

_IGNORE_CASE = re.IGNORECASE

BEFORE_CHARACTERS = 240  # that a cue may stand before what it speaks of
BEHIND_CHARACTERS = 80

_GETTING_IN = re.compile(
    r"pass ?(?:words?|codes?|phrases?)|passwort|kennwort|contraseña|\bclave\b|\bwi-?fi\b|\bwlan\b|"
    r"\blog(?:s|ged|ging)?[ -]?(?:in|on|into)\b|\bsign(?:ed|ing)? in(?:to)?\b|\bcredentials?\b|\bunlock\w*|"
    r"\bgets? in(?:to)? with\b|"
    r"\bunderscore\b|\b(?:upper|lower)[ -]?case\b|\bwith a capital\b|\bcase[ -]sensitive\b|\beinlogg\w*|\banmeld\w*|"
    r"iniciar sesión|密码|口令|登录|登陆|登[的不上进]|无线网|热点|解锁|大小写|下划线",
    _IGNORE_CASE,
)
_WORD = re.compile(r"(?<![\w/@.:+=-])[A-Za-z][A-Za-z0-9_!@#$%^&*+?~-]{5,63}(?![\w@/=]|\.\w)", re.ASCII)
_SYMBOL = re.compile(r"[!@#$%^&*_]")
_ENDS_IN_NUMBER = re.compile(r"[A-Za-z]{4,}\d{3,}[!?]*$")
_WORDS_AND_NUMBER = re.compile(r"[A-Za-z]+(?:[-_][A-Za-z]+)+[-_]?\d+[!?]*$")

_GUARD = re.compile(
    r"\b(?:alarm|keypad|key ?box|lock ?box|locks?|locker|doors?|gate|garage|safe|vault|buzzer|entrance|hash key|"
    r"star key)\b|"
    r"门禁|门锁|大门|保险[箱柜]|报警|alarmanlage|haustür|tresor|puerta|caja fuerte",
    _IGNORE_CASE,
)
_TYPED_IN = re.compile(
    r"(?:\b(?:punch|type|key|enter|dial|press|tap|put)(?:e?s|e?d|ing)?(?: in)?|\b(?:gib|tippe?|marca|teclea)|"
    r"输入|按下?|摁)\s*(?:(?:the )?(?:code|number|digits)\s*)?[#*]?(?P<value>\d(?:[ -]?\d){2,7})"
    r"(?=\s*(?:$|[,;!?)，。；！]|\.(?!\d)|(?:and|then|to|into|on|at|before|followed|und|dann|y|luego)\b|[就再然]))",
    _IGNORE_CASE,
)
_CARD = re.compile(r"\b(?:card|visa|amex|mastercard|kreditkarte|tarjeta)\b|信用卡|银行卡|卡号", _IGNORE_CASE)
_ON_THE_CARD = re.compile(
    r"(?:\b(?:security |card )?code|\b(?:cvc|cvv|cvn)2?|安全码|prüfnummer)\s*(?:is|ist|es|是|"
    r"[:：=])?\s*(?P<code>\d{3,4})(?!\d)|"
    r"(?:\bexp(?:\.|iry|ires|iration)?(?: date)?|\bvalid (?:until|thru|through|till)|\bgültig bis|\bcaduca|有效期至?)"
    r"\s*(?:is|ist|[:：=])?\s*(?P<date>(?:0?[1-9]|1[0-2])\s?/\s?\d{2,4})(?!\d)",
    _IGNORE_CASE,
)
_DIGIT_BY_DIGIT = re.compile(
    r"(?:(?<!\w)(?:pin|passcode|password|passwort|contraseña|clave)(?!\w)|密码|口令|验证码)[^\d\n]{0,20}"
    r"(?P<value>\d(?:[ ,-] ?\d){3,11})(?!\d)",
    _IGNORE_CASE,
)
_WALLET = re.compile(
    r"\b(?:wallet|seed|recovery|mnemonic|backup) ?(?:phrase|words?)?\b|\bwords?\b.{0,30}\border\b|助记词|钱包",
    _IGNORE_CASE,
)
_PLAIN_WORDS = re.compile(r"(?<![\w'’.-])(?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8}(?![\w'’])")
# Words that prose cannot do without, and that no list of key words holds.
_OF_PROSE = re.compile(
    r"\b(?:the|and|for|with|are|was|his|her|our|its|from|has|had|have|but|not|they|them|been|were)\b"
)


def cued_spans(text: str) -> Iterator[Span]:
    """In no order; they may overlap."""
    yield from _words(text)
    for match in _TYPED_IN.finditer(text):
        if _is_near(_GUARD, text, *match.span()):
            yield (*match.span("value"), SecretClass.PASSWORD)
    for match in _ON_THE_CARD.finditer(text):
        if _is_near(_CARD, text, *match.span()):
            yield (*match.span("code" if match["code"] else "date"), SecretClass.CARD_NUMBER)
    for match in _DIGIT_BY_DIGIT.finditer(text):
        yield (*match.span("value"), SecretClass.PASSWORD)
    for match in _PLAIN_WORDS.finditer(text):
        if not _OF_PROSE.search(match.group()) and _is_near(_WALLET, text, *match.span()):
            yield (*match.span(), SecretClass.PASSWORD)


def _words(text: str) -> Iterator[Span]:
    if not _GETTING_IN.search(text):
        return
    for match in _WORD.finditer(text):
        if _is_made_like_a_password(match.group()) and _is_near(_GETTING_IN, text, *match.span()):
            yield (*match.span(), SecretClass.PASSWORD)


def _is_made_like_a_password(word: str) -> bool:
    if sum(c.isdigit() for c in word) < 2:
        return False
    has_symbol = bool(_SYMBOL.search(word)) and any(c.islower() for c in word)
    return has_symbol or bool(_ENDS_IN_NUMBER.match(word) or _WORDS_AND_NUMBER.match(word))


def _is_near(cue: re.Pattern[str], text: str, start: int, end: int) -> bool:
    return bool(cue.search(text[max(0, start - BEFORE_CHARACTERS) : end + BEHIND_CHARACTERS]))


__all__ = ["cued_spans"]
