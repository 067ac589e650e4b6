"""Secrets that a word announces: "my password is …", "密码是…", "token=…", "… is my PIN", a passport's number.

When in doubt about what stands behind such a word, it is one; talk about secrets ("my password is too weak") must stay
whole. Pure, and linear in the text: every repetition has its limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.learn.secrets.secret_classes import SecretClass, Span
from memory.learn.secrets.secrets_behind import others_behind, phrase_end, told_behind

_IGNORE_CASE = re.IGNORECASE

_BEARER = re.compile(
    r"\b(?:bearer|basic|authorization:\s*\w+|token|apikey|api-key)\s+(?P<value>[A-Za-z0-9_\-./+=~]{16,})", _IGNORE_CASE
)
_URL_PASSWORD = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,80}:(?P<value>[^\s/@][^\s@]{0,200})(?=@)", _IGNORE_CASE
)
_QUOTED = (  # a value in quotation marks is all that stands between them
    r"(?:[\"“„](?P<quoted>[^\"“”„\n]{3,128})[\"”“]|['‘](?P<single>[^'’\n]{3,128})['’](?!\w)|"
    r"「(?P<corner>[^」\n]{2,128})」)"
)
_ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9])[\w.-]{0,40}(?:password|passwd|pwd|secret[_-]?key|api[_-]?key|access[_-]?key|private[_-]?key|"
    r"(?:secret|tokens?|credentials?|session[_-]?id)(?!(?-i:[a-z]))|(?<![A-Za-z])auth(?!(?-i:[a-z])))"
    rf"[\w.-]{{0,20}}[\"']?\s*(?:=|:=|=>|:)\s*(?:{_QUOTED}|(?P<value>[^\s\"',;，。；]{{4,200}}))",
    _IGNORE_CASE,
)

_KEY_LETTERS_MIN = 14  # a key of letters alone is longer than nearly all words
_WORD_ENDINGS = ("ed", "ly", "ing", "able", "ible", "tion", "al", "ous", "ive", "ment", "ness")
_TOKEN_DIGITS_MIN = 8  # fewer are a number of tokens

# In prose: the word, what it is for, what links it to the value, and the value.
_FOR = r"(?:\s+(?:for|of|to|on|at|in|del?|de la|zu[mr]?|für|von)(?:\s+[\w'’-]+){1,4}?)?"
_LINK = (
    r"\s*(?:[,?]\s*(?:it['’]s|it is|its)(?: still| now)?|"
    r"is now|is still|is|are|was|=|:|：|ist|lautet|es|sigue siendo|→|->)\s*:?\s*"
)
_CHANGED = r"(?:chang|reset|set|updat|switch|mov|renew)(?:e|ed|ing|ting|s)?"
_DIGIT_WORD = (
    r"(?:(?:double|triple) )?(?:zero|oh|one|two|three|four|five|six|seven|eight|nine|null|eins|zwei|drei|vier|fünf|"
    r"sechs|sieben|acht|neun|cero|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve)"
)
_DIGITS_SPOKEN = re.compile(rf"{_DIGIT_WORD}(?:[ ,-]{{1,2}}{_DIGIT_WORD}){{2,11}}", _IGNORE_CASE)
_PASSWORD_CHARACTERS_MIN = 3
_NAMES_OF_ONE = (
    r"(?:[\w-]{0,30}(?:password|passwort|kennwort)s?|pass ?words?|pass ?codes?|passwd|pwd?|contraseñas?|clave|"
    r"mot de passe|"
    r"pin(?: ?code| number| nummer)?|puk|cvc2?|cvv2?|cvn|otp|tan|"
    r"(?:security|one-time|2fa|verification|sms|backup|recovery|reset|login|unlock) (?:codes?|keys?|passwords?)|"
    r"(?:totp|2fa|otp) (?:secret|key|seed)|(?:wi-?fi|wlan|wpa\d?)[ -]?(?:keys?|codes?|schlüssel)|netzwerkschlüssel)"
)
_PASSWORD = re.compile(
    rf"(?<!\w){_NAMES_OF_ONE}{_FOR}{_LINK}(?:{_QUOTED}|[\"'“‘]?"
    rf"(?P<value>{_DIGIT_WORD}(?:[ ,-]{{1,2}}{_DIGIT_WORD}){{2,11}}|"
    r"\d{2,4}[ -]\d{2,4}(?!\d)|[^\s\"'”’,;，。；]{3,128}|(?<=\s)[a-z]{1,2}(?=\s))"
    r"(?P<more>(?:,? (?:and )?[\w-]*\d[\w-]*\d[\w-]*)*))",
    _IGNORE_CASE,
)
_PASSWORD_CHANGED = re.compile(  # "changed my password to …", "my password was changed to …"
    rf"(?<!\w)(?:{_CHANGED}\s+(?:[\w'’-]+\s+){{0,4}}?{_NAMES_OF_ONE}{_FOR}|{_NAMES_OF_ONE}{_FOR}\s+"
    rf"(?:(?:was|is|got|has|have|had|been|just|now)\s+){{0,3}}{_CHANGED})(?:\s+(?:from|back)(?:\s+\S+)?)?\s+to\s+"
    rf"(?:{_QUOTED}|(?P<value>[^\s\"'”’,;，。；]{{3,128}}))(?P<goes_on>\s+(?!(?:and|but|yesterday|today|now)\b)\w)?",
    _IGNORE_CASE,
)
_PASSWORD_BEFORE = re.compile(  # "… is my password", "use … as my password", "my password, …, is old"
    rf"(?<!\S)(?P<value>(?=\S{{0,60}}\d)[^\s\"'”’,;，。；]{{3,64}})\s+(?:is|was|ist|es|as|als)\s+(?:(?:still|now)\s+)?"
    rf"(?:my|our|the|his|her|their|mein|meine|das|die|mi|la)\s+(?:[\w'’-]+\s+){{0,3}}?{_NAMES_OF_ONE}"
    rf"(?=\s*(?:[.,;:!?)]|$)|\s+(?:for|of|to|on|at|in|and|but|now|für|von|de|del)\b)|"
    rf"(?<!\w){_NAMES_OF_ONE},\s+(?P<words>(?=\S{{0,60}}\d)[^\s\"'”’,;，。；]{{3,64}}),",
    _IGNORE_CASE,
)
_PASSWORD_NAMED_LATE = re.compile(  # "it's …, my password"
    r"\b(?:it['’]s|it is|that['’]s|that is|(?:es|das) ist|es)\s+(?P<value>(?=\S{0,60}\d)[^\s\"'”’,;，。；]{3,64}),\s+"
    rf"(?:my|our|the|his|her|their|mein|meine|das|die|mi|la)\s+(?:[\w'’-]+\s+){{0,3}}?{_NAMES_OF_ONE}{_FOR}"
    r"(?=\s*(?:[.,;:!?)]|$))",
    _IGNORE_CASE,
)
_USED_EVERYWHERE = re.compile(  # "I use … for all my accounts"
    r"\b(?:us(?:e|ed|ing)|have|nutze|benutze|verwende|uso|utilizo)\s+(?!(?:office|microsoft|windows)-?\d|\S{0,60}\d\.\d)"
    r"(?P<value>(?=[^\s@]{6,64}\s)(?=\S{0,60}[a-z])(?=\S{0,60}\d\S{0,20}(?:\d|[!$%^*&#]))[^\s\"'”’,;，。；@]{6,64})\s+"
    r"(?:for|on|at|in|für|bei|auf|para|en)\s+(?:(?:all|every|each|most|both|alle[ns]?|jede[mns]?|todas|todos|cada)\s+)"
    r"(?:of\s+)?(?:(?:my|our|the|these|those|meine[n]?|mis|las|los)\s+)?(?:[\w-]+\s+)?"
    r"(?:accounts?|log-?ins?|(?:web)?sites?|portals?|konten|konto|cuentas?)\b",
    _IGNORE_CASE,
)
_OPENED_WITH = re.compile(  # "my safe opens with …", "my laptop unlocks with …"
    r"\b(?:safe|locker|(?:pad|bike |door )?lock|door|gate|garage|suitcase|briefcase|cash ?box|laptop|phone|tablet|"
    r"computer|ipad|iphone|tresor|handy|schloss|koffer)\s+(?:is\s+)?(?:open(?:s|ed)?|unlock(?:s|ed)?|geht auf)\s+"
    r"(?:with|by|on|mit)\s+(?:(?:the )?(?:code|pin|number|combination)\s+)?(?P<value>\d(?:[ -]{0,3}\d){2,11})(?![\d%])"
    r"(?=\s*(?:[,;!?)]|\.(?!\d)|$|(?:and|but|or|then|und|aber)\b))|"
    r"\b(?:(?:lock(?:er)?|padlock|bike(?: lock)?|suitcase|luggage|briefcase|safe)['’]?s? combination|combination "
    r"(?:for|to|of) (?:[\w'’-]+ ){0,2}(?:lock(?:er)?|padlock|bike|suitcase|luggage|briefcase|safe))\s*"
    r"(?:is now|is|was|=|:)\s*(?P<words>\d(?:[ -]{0,3}\d){2,11})(?!\w)",
    _IGNORE_CASE,
)
_LOGIN = re.compile(
    rf"(?<!\w)(?:log-?ins?|credentials|user ?names?(?: and password)?|zugangsdaten){_FOR}{_LINK}[^\s,;/|]{{1,64}}"
    r"(?:(?P<tight>[/|:])|\s*[/|:]\s*)(?P<value>[^\s\"'”’,;，。；]{3,128})",
    _IGNORE_CASE,
)
_GUARDED = r"(?:alarm|door|gate|garage|safe|vault|entry|building|lock|keypad|voicemail|house|unlock|burglar)"
_CODE = re.compile(
    rf"(?<!\w)(?:{_GUARDED}(?: system| box)?['’]?s? (?:code|combination|pin)s?{_FOR}|"
    rf"codes? (?:for|to|of) (?:[\w'’-]+ ){{0,2}}{_GUARDED}(?: system| box)?)"
    r"(?:\s*(?:is now|is|are|was|=|:)\s*|\s+)#?(?P<value>(?=(?:\S{0,8}\d){3})[^\s,;，。；]{3,24})",
    _IGNORE_CASE,
)
_PASSWORD_SHORT = re.compile(r"(?<!\w)(?:pass|pw|login)\s*[:=]\s*(?P<value>[^\s\"'”’,;，。；]{3,128})", _IGNORE_CASE)
_PASSWORD_BARE = re.compile(
    r"(?<!\w)(?:pin|puk|cvc2?|cvv2?|cvn|otp|tan|passcode|password|passwort|kennwort|contraseña|pwd?|"
    r"(?:totp|2fa|otp)(?: secret| key| code)?)\s+"
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
_HEXADECIMAL = re.compile(
    r"(?:\b(?:keys?|secrets?|tokens?|credentials?)\b|密钥|秘钥|令牌)[^\n.。]{0,40}?(?<![0-9a-z])"
    r"(?P<value>(?:0x)?[0-9a-f]{32,128})(?![0-9a-z])",
    _IGNORE_CASE,
)
_PASSWORD_ZH = re.compile(
    r"(?:密码|口令|验证码|校验码|动态码|安全码|密钥|秘钥|令牌|暗号|PIN码?)\s*(?:现在)?"
    r"(?:(?P<link>是|为|改成了?+|改为了?+|换成了?+|设成了?+|设为了?+|[:：=])\s*[“\"'「]?\s*"
    r"(?P<words>(?=[^\s,;，。；！？!?、”\"'」]*[\u3400-\u9fff])[^\s,;，。；！？!?、”\"'」]{2,40})|"
    r"(?:[?？，,]?\s*还是|是|为|改成了?+|改为了?+|换成了?+|设成了?+|设为了?+|"
    r"[:：=])?\s*[“\"']?(?P<value>[A-Za-z0-9!@#$%^&*()_+\-=.?~]{4,128}))",
    _IGNORE_CASE,
)
_PLAIN_ZH = re.compile(
    r"什么|啥|多少|哪|谁|怎|不|没|很|太|错|对[的了]?$|假|真的|旧|新的|过期|安全|弱|强|公开|一样|由|用|在|从|必须|需要|要|应|随机|"
    r"同一|默认|加密|保密|唯一|[\u3400-\u9fff]{1,6}[的吗呢吧]$"
)
_NEXT_CLAUSE = re.compile(r"\s+(?:and|but|und|y)\s+(?:i|the|my|it|we|ich|mi)\b", _IGNORE_CASE)
# What is said of passwords rather than as one: "my password is too weak", "… was changed".
_PLAIN = frozenset(
    "a an the my your our their his her its not no never always still also just only too very so really quite "
    "rather wrong right correct incorrect weak strong long short old new same different expired expiring valid "
    "invalid safe secure easy hard difficult simple impossible required missing gone lost stolen leaked public "
    "private empty blank broken fine ok good bad changed set reset stored saved kept written managed generated "
    "encrypted hashed rotated shared known being unknown something anything nothing one on in at under with from "
    "by for to case-sensitive needed used unique random hidden visible working what why falsch richtig zu sehr "
    "nicht kein sicher unsicher lang kurz alt neu weg abgelaufen im auf muy incorrecta correcta débil segura "
    "larga corta vieja nueva en la el una un longer shorter stronger weaker better worse similar".split()
)

_CARD_NAMED = re.compile(
    r"(?:\b(?:card|visa|mastercard|amex|kreditkarte\w*|kartennummer|tarjeta)\b|银行卡|信用卡|卡号)[^\d\n]{0,24}"
    r"(?P<value>(?:\d[ .-]?){12,18}\d)(?!\d)",
    _IGNORE_CASE,
)
_ACCOUNT_NAMED = re.compile(
    r"(?:\b(?:account|acct|routing|konto|cuenta)\s*(?:number|no\.?|nummer|nr\.?|#|número)|\bkontonummer|账号|账户)"
    r"\s*(?:is|ist|es|是|为|[:：])?\s*(?P<value>\d[\d -]{6,24}\d)",
    _IGNORE_CASE,
)
_PERSON_NAMED = re.compile(
    r"(?:\b(?:passport|driver['’]?s licen[cs]e|driving licen[cs]e|social security|ssn|national id|id card|tax id|"
    r"dni|nie|cpf|aadha+r|"
    r"steuer-?id(?:nummer)?|steuernummer|personalausweis\w*|reisepass\w*|pasaporte|nhs)|护照|驾照|身份证|社保|通行证|台胞证)"
    r"(?:[ -]?(?:number|no\.?|nummer|nr\.?|#|número|号码?|卡号))?\s*(?:is|ist|lautet|es|是|为|[:：])?\s*"
    r"(?P<value>(?:(?-i:[A-Z]{1,3}) )?(?=(?:[A-Za-z-]{0,6}\d){5}|\d{2,4}(?: \d{2,4}){1,4})"
    r"(?:\d{2,4}(?: \d{2,4}){1,4}|[A-Za-z0-9][A-Za-z0-9-]{5,24})(?![\w]))",
    _IGNORE_CASE,
)
_NAMED = (
    (_BEARER, SecretClass.TOKEN),
    (_URL_PASSWORD, SecretClass.PASSWORD),
    (_ASSIGNED, SecretClass.TOKEN),
    (_PASSWORD, SecretClass.PASSWORD),
    (_PASSWORD_CHANGED, SecretClass.PASSWORD),
    (_PASSWORD_BEFORE, SecretClass.PASSWORD),
    (_PASSWORD_NAMED_LATE, SecretClass.PASSWORD),
    (_USED_EVERYWHERE, SecretClass.PASSWORD),
    (_OPENED_WITH, SecretClass.PASSWORD),
    (_LOGIN, SecretClass.PASSWORD),
    (_CODE, SecretClass.PASSWORD),
    (_PASSWORD_SHORT, SecretClass.PASSWORD),
    (_PASSWORD_BARE, SecretClass.PASSWORD),
    (_PASSPHRASE, SecretClass.PASSWORD),
    (_API_KEY, SecretClass.API_KEY),
    (_HEXADECIMAL, SecretClass.TOKEN),
    (_PASSWORD_ZH, SecretClass.PASSWORD),
    (_CARD_NAMED, SecretClass.CARD_NUMBER),
    (_ACCOUNT_NAMED, SecretClass.BANK_ACCOUNT),
    (_PERSON_NAMED, SecretClass.NATIONAL_ID),
)


def spoken_spans(text: str) -> Iterator[Span]:
    """Every secret that a word announces, in no order; they may overlap."""
    for pattern, kind in _NAMED:
        for match in pattern.finditer(text):
            yield from _named(match, pattern, kind)


_GOES_ON = (_PASSWORD, _PASSWORD_CHANGED, _PASSWORD_ZH)
_PHRASE_MIN = 3  # words of a phrase, where its first is a secret already
_TALK_PHRASE_MIN = 4  # where its first is a word of talk: fewer are talk
_VALUES = ("value", "quoted", "single", "corner", "words")  # the groups that may hold the secret


def _named(match: re.Match[str], pattern: re.Pattern[str], kind: SecretClass) -> Iterator[Span]:
    """What stands behind a word such as "password", unless it is talk about it; and what follows in its sentence."""
    said = match.groupdict()
    group = next(name for name in _VALUES if said.get(name) is not None)
    start, end = match.span(group)
    value = match[group].rstrip(".,;:，。 ")
    if not value or value.startswith(("[redacted", "[withheld")):
        return
    is_talk = _is_talk(value, match, group)
    if not is_talk:
        if pattern is _PASSPHRASE:
            value = _NEXT_CLAUSE.split(value, maxsplit=1)[0]
        more = len(said.get("more") or "")
        yield start, (end + more if more else start + len(value)), kind
    if pattern in _GOES_ON:
        for first, last in _behind(match.string, start, start + len(value), is_talk=is_talk):
            yield first, last, kind


def _behind(text: str, start: int, end: int, *, is_talk: bool) -> Iterator[tuple[int, int]]:
    """What the sentence tells behind the value from `start` to `end`: more of a phrase, the value itself, another."""
    last = phrase_end(text, start, end, _TALK_PHRASE_MIN if is_talk else _PHRASE_MIN)
    if last > end:
        yield start, last
    elif is_talk:
        yield from told_behind(text, start, end)
    for first, last in others_behind(text, end):
        word = text[first:last].strip("!?)\"'").casefold()
        if any(c.isdigit() for c in word) or not (is_talk or word in _PLAIN or _is_participle(word)):
            yield first, last


def _is_participle(word: str) -> bool:
    return word.endswith(("ed", "ing", "able"))


def _is_talk(value: str, match: re.Match[str], group: str) -> bool:
    pattern, words = match.re, [word.strip("!?)\"'”’").casefold() for word in value.split()]
    if group in ("quoted", "single", "corner"):
        return all(word in _PLAIN for word in words)
    is_word, has_digit = words[0].isalpha(), any(c.isdigit() for c in value)
    if pattern is _PASSPHRASE and (
        len(words) > 3 or phrase_end(value, 0, len(words[0]), _PHRASE_MIN) == len(value) > 0
    ):
        return False
    if pattern in (_PASSWORD, _PASSPHRASE, _PASSWORD_CHANGED):
        if _DIGITS_SPOKEN.fullmatch(value):
            return False
        goes_on = is_word and bool(match.groupdict().get("goes_on"))  # "to protect my account"
        is_short = is_word and len(value) < _PASSWORD_CHARACTERS_MIN
        return goes_on or is_short or words[0] in _PLAIN or (is_word and _is_participle(words[0]))
    if pattern in (_API_KEY, _ASSIGNED):
        is_long = len(value) >= _KEY_LETTERS_MIN and not words[0].endswith(_WORD_ENDINGS)
        is_number_of_tokens = value.isdigit() and len(value) < _TOKEN_DIGITS_MIN and "token" in match[0].casefold()
        return is_number_of_tokens if has_digit else not is_long
    if pattern is _LOGIN:
        return is_word and not match["tight"]
    if pattern is _PASSWORD_ZH:
        return bool(_PLAIN_ZH.match(value)) if group == "words" else value.isalpha() and value.isascii()
    return False
