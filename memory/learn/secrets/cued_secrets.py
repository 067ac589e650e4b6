"""Secrets that nothing names, known by what is talked of: a text about logging in, and a word made like a password.

"The network is Foxglove, you get in with marmalade-on-toast-77", "punch in 7741", twelve bare words about a wallet. A
cue has to stand near, or it is an ordinary name or number and must stay whole. Pure, and linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.learn.secrets.secret_classes import SecretClass, Span

_IGNORE_CASE = re.IGNORECASE

BEFORE_CHARACTERS = 240  # that a cue may stand before what it speaks of
BEHIND_CHARACTERS = 80

_GETTING_IN = re.compile(
    r"pass ?(?:words?|codes?|phrases?)|passwort|kennwort|contraseña|\bclave\b|\bwi-?fi\b|\bwlan\b|"
    r"\blog(?:s|ged|ging)?[ -]?(?:in|on|into)\b|\bsign(?:ed|ing)? in(?:to)?\b|\bcredentials?\b|\bunlock\w*|"
    r"\bgets? in(?:to)? with\b|"
    r"\bunderscore\b|\b(?:upper|lower)[ -]?case\b|\bwith a capital\b|\bcase[ -]sensitive\b|\beinlogg\w*|\banmeld\w*|"
    r"\bgets? (?:back )?(?:in)?to\b|\bgetting into\b|\b(?:opens?|unlocks?) with\b|\bshe types\b|\bhe types\b|"
    r"\bi type\b|\bcaps lock\b|"
    r"\brouter\b|\bbenutzername\b|\bnutzername\b|\bentrar? en\b|\busuario\b|路由器|后台|进[得不]去|"
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
    r"门禁|门锁|大门|单元门|房门|楼道|井号|星号|保险[箱柜]|报警|alarmanlage|haustür|tresor|puerta|caja fuerte",
    _IGNORE_CASE,
)
_TYPED_IN = re.compile(
    r"(?:\b(?:punch|type|key|enter|dial|press|tap|put)(?:e?s|e?d|ing)?(?: in)?|\b(?:gib|tippe?|marca|teclea)|"
    r"输入|按下?|摁)\s*(?:(?:the )?(?:code|number|digits)\s*)?[#*]?(?P<value>\d(?:[ -]?\d){2,7})"
    r"(?=\s*(?:$|[,;!?)，。；！]|\.(?!\d)|(?:and|then|to|into|on|at|before|followed|und|dann|y|luego)\b|[就再然]))",
    _IGNORE_CASE,
)
_DOOR_IS = re.compile(
    r"\b(?:door|gate|garage|alarm|entrance|(?:key|lock) ?box|buzzer)(?: code)?\s*(?:is|was|:|"
    r"=)\s*#?(?P<value>\d{3,8})(?![\d.:%/])"
    r"(?!\s*(?:years?|metres?|meters?|cm|mm|inches|feet|m\b))|"
    r"(?<!\d)(?P<keyed>\d{3,8})\s*,?\s*(?:and|then|followed by)?\s*(?:then )?(?:press )?(?:the )?(?:hash|pound|"
    r"star) (?:key|sign)",
    _IGNORE_CASE,
)
_NOT_TO_SHARE = re.compile(
    r"(?<![\d.,/:-])(?P<value>\d{4,8})(?![\d/:-])[^\n]{0,40}?(?:\b(?:do not|don['’]?t|never) (?:share|tell|give)\b|"
    r"请勿(?:泄露|告知|转发)|切勿)",
    _IGNORE_CASE,
)
# No name, no address, no sum of money is written so.
_MADE_LIKE_ONE = re.compile(
    r"[A-Za-z]{4,}\d*[!$%^*&][A-Za-z]*\d+[A-Za-z\d]*|[A-Za-z]{3,}\d*[!$%^*][A-Za-z]{2,}\d+|"
    r"[a-z]{4,}[-_][A-Z][a-z]{2,}[-_]?\d{2,}",
    re.ASCII,
)
_RUN = re.compile(r"(?<![\w/@.:+=$%&!^*-])[A-Za-z][\w!$%^*&-]{7,63}(?![\w/@=(\[!$%^*&-])", re.ASCII)
_CODE_GROUPS = re.compile(
    r"(?<![\w-])(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Z])(?:[A-Z0-9]{4,6}-){2,7}[A-Z0-9]{4,6}(?![\w-])", re.ASCII
)
_CARD_GROUPS = re.compile(
    r"(?<![\d-])(?<![A-Z]{2}\d{2} )[2-6]\d{3}(?P<gap>[ -])\d{4}(?P=gap)\d{4}(?P=gap)\d{4}(?:(?P=gap)\d{1,3})?(?![\d-])"
)
_IN_FOURS_BEHIND = 60  # characters behind a card's number in which its date and code stand
_DATE_AND_CODE = re.compile(
    r"(?<![\d/])(?P<date>(?:0[1-9]|1[0-2])\s?/\s?\d{2})(?![\d/])|(?:\bback\b|"
    r"背面)[^\d\n]{0,12}(?P<code>\d{3,4})(?!\d)",
    _IGNORE_CASE,
)
# Of the British and the German insurance; a Chinese one, mistyped as it may be.
_ID_SHAPES = re.compile(
    r"(?<![\w])(?:[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]|\d{2} ?\d{6} ?[A-Z] ?\d{3})(?!\w)|"
    r"(?<!\d)[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|"
    r"3[01])\d{3}[\dXx](?!\d)"
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
_PHRASE_WORDS = (12, 15, 18, 21, 24)
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
    yield from _by_shape(text)
    for match in _PLAIN_WORDS.finditer(text):
        if not _OF_PROSE.search(match.group()) and (_stands_alone(match) or _is_near(_WALLET, text, *match.span())):
            yield (*match.span(), SecretClass.PASSWORD)


def _by_shape(text: str) -> Iterator[Span]:
    """What is written as nothing else is, whatever is talked of."""
    for pattern in (_DOOR_IS, _NOT_TO_SHARE):
        for match in pattern.finditer(text):
            yield (*match.span(match.lastgroup or 0), SecretClass.PASSWORD)
    for match in _RUN.finditer(text):
        if _MADE_LIKE_ONE.fullmatch(match.group().rstrip("!")):
            yield (*match.span(), SecretClass.PASSWORD)
    for match in _CODE_GROUPS.finditer(text):
        yield (*match.span(), SecretClass.PASSWORD)
    for match in _ID_SHAPES.finditer(text):
        yield (*match.span(), SecretClass.NATIONAL_ID)
    for match in _CARD_GROUPS.finditer(text):
        yield (*match.span(), SecretClass.CARD_NUMBER)
        for beside in _DATE_AND_CODE.finditer(text, match.end(), match.end() + _IN_FOURS_BEHIND):
            yield (*beside.span(beside.lastgroup or 0), SecretClass.CARD_NUMBER)


def _stands_alone(match: re.Match[str]) -> bool:
    """Whether so many words as a wallet's phrase has stand behind a colon, or make up the text."""
    lead = match.string[: match.start()].rstrip(" ")
    behind = match.string[match.end() :].lstrip(" ")
    is_bare = "," not in match.group() and len(match.group().split()) in _PHRASE_WORDS
    return is_bare and (not lead or lead[-1] in ":：\n") and (not behind or behind[0] in ".?!\n")


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
