"""Text that the user presents: the line that announces it, and how far it goes.

"Translate this: …", "John wrote me this:", "File: notes.txt", 这是我朋友写的：. What follows is that text, until the
user plainly speaks again. What announces the user themselves ("Here is something about me:") is no such line, and
neither is what they have written of themselves. Never looks at what the text says, except where somebody is quoted:
that is foreign only if it says "I". Patterns only, each linear in its text. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.learn.lexicon import FIRST_PERSON, RELATIONS_ZH, language_of

ANNOUNCEMENTS_MAX = 100  # nobody presents more in one message: what follows was pasted

FLAGS = re.IGNORECASE | re.MULTILINE

_AT_START = r"(?:^[ \t]*(?:[-*•#>]+[ \t]+)?|(?<=[.!?;] )|(?<=[。！？；，]))"
_POLITE = r"(?:(?:please|pls|hey|hi|ok|now|bitte|por favor)[, ]+)*"
_COULD_YOU = (
    r"(?:(?:can|could|would|will) you (?:please )?|help me (?:to )?|i(?:['’]d like| want| need) you to |"
    r"(?:kannst|könntest) du (?:bitte )?|(?:puedes|podrías) )?"
)
_TEXT = (
    r"(?:page|text|article|e-?mail|mail|message|letter|paragraph|passage|snippet|sentences?|phrase|review|readme|"
    r"document|"
    r"post|essay|poem|story|tweet|comment|dialogue|conversation|transcript|lyrics|quote|excerpt|abstract|speech|"
    r"blurb|"
    r"profile|bio(?:graphy)?|r[ée]sum[ée]|cv|ad(?:vert)?|listing|complaint|reply|statement|caption|notes?|diary|"
    r"entry|"
    r"code|log|error|output|json|csv|file|seite|artikel|nachricht|brief|satz|absatz|aufsatz|página|texto|correo|"
    r"artículo|"
    r"mensaje|frase|carta|párrafo)"
)
# A portrait that people write of themselves says "I" and means it; their letters, essays and homework may pretend, and
# address somebody else. So a portrait of one's own is told, whatever is to be done with it.
_OWN_PORTRAIT = re.compile(
    r"\b(?:my|our|mein\w*|unser\w*|mis?) (?:[\w-]+ )?(?:cv|r[ée]sum[ée]|bio(?:graphy)?|profile?|cover letter|"
    r"about(?:[ -]me)?|"
    r"self-?(?:introduction|description|portrait)|introduction|personal statement|lebenslauf|profil|steckbrief|"
    r"vorstellung|currículum|curr[ií]culo|perfil|biografía|presentación)\b|"
    r"我(?:自己)?的?(?:个人)?(?:自我介绍|简历|简介|介绍|资料|求职信|履历)",
    FLAGS,
)
_ABOUT_ONESELF = re.compile(
    r"\b(?:about|of|for|on) (?:me|myself|us|ourselves)\b|\bmy (?:own )?(?:situation|case|facts|details|background|"
    r"life|"
    r"family|plan|data)\b|"
    r"\b(?:über mich|zu mir|zu meiner person|sobre m[ií])\b|关于(?:我(?!们?的?(?:朋友|同事))|本人)|"
    r"我(?:自己|们?家)?的(?:\w{0,2})(?:情况|信息|要求|爱好|习惯|背景|安排|计划|经历|需求)|我自己",
    FLAGS,
)

_REQUEST = re.compile(
    rf"{_AT_START}{_POLITE}{_COULD_YOU}"
    r"(?:summari[sz]e|sum up(?= \w)|translate|proof-?read|rewrite|rephrase|paraphrase|correct|polish|decode|tidy|"
    r"reformat|"
    r"improve|edit|shorten|fix|review|check|explain|convert|extract|classify|analy[sz]e|reply to|answer|read|"
    r"resume|traduce|corrige|revisa|mejora|fasse?|übersetze?|korrigiere?|verbessere?)\b[^\n:：.!?]{0,60}(?:[:：]|\n)",
    FLAGS,
)
_REQUEST_ENDED = re.compile(
    rf"{_AT_START}{_POLITE}{_COULD_YOU}(?:"
    r"(?:translate|proof-?read|rephrase|paraphrase|summari[sz]e|übersetze?|korrigiere?|traduce|corrige)"
    r"(?: (?:this|these|that|the following|diese[nrs]?|folgende[nrs]?|est[ea]))|"
    r"(?:summari[sz]e|translate|proof-?read|rewrite|rephrase|paraphrase|correct|polish|improve|edit|shorten|fix|"
    r"review|"
    r"check|explain|analy[sz]e|read|(?:have|take) a look at|look at|übersetze?|korrigiere?|prüfe?|lies|traduce|"
    r"corrige|"
    rf"revisa|lee) (?:this|these|that|the|my|diese[nrs]?|den|die|das|est[ea]|el|la) (?:[\w-]+ ){{0,2}}{_TEXT}"
    r")(?: (?:below|please|for me|bitte|(?:in)?to \w+|here|for (?:errors|mistakes|typos|grammar)))*[.!?](?=\s+\S)",
    FLAGS,
)
_SHOWN = re.compile(
    rf"{_AT_START}(?:here(?:['’]s| is| are| comes)|below (?:is|are)|attached is|this is|these are|i found (?:this|"
    rf"these)|"
    r"i got (?:this|these)|hier (?:ist|sind|kommt)|aquí (?:está|va|tienes)|est[ea] es)\b"
    rf"[^\n:：.!?]{{0,50}}\b{_TEXT}\b[^\n:：.!?]{{0,40}}[:：]"
    r"|^[^\n:：]{0,40}\b(?:this|following|below|attached|pasted|diese[rsn]?|folgende[rsn]?|est[ea]|siguiente)\b"
    rf"[^\n:：]{{0,20}}\b{_TEXT}\b[^\n:：]{{0,30}}[:：](?!//)"
    r"|^[^\n:：]{0,60}\b(?:page|text|article|mail|e-?mail|message|letter|paragraph|passage|snippet|code|log|error)\b"
    r"[^\n:：]{0,60}\?[ \t]*\n"
    rf"|{_AT_START}[^\n:：.!?]{{0,40}}(?:['’]s|s['’]) {_TEXT}\b[^\n:：.!?]{{0,30}}[:：]"
    rf"|{_AT_START}(?:{_TEXT}|message|mail) (?:from|by|of) [^\n:：.!?]{{1,30}}[:：]"
    r"|^[ \t]*(?:text|original(?: text)?|transcript|excerpt|quote|article|passage|paragraph|lyrics|dialogue|log|code|"
    r"output|input|sample)[ \t]*[:：]"
    r"|^[ \t]*(?:begin forwarded message|-+ ?(?:original|forwarded) message ?-+|-+ ?(?:ursprüngliche|"
    r"weitergeleitete) "
    r"nachricht ?-+|-+ ?mensaje (?:original|reenviado) ?-+|-*转发(?:的)?邮件-*|on [^\n]{4,80} wrote|"
    r"am [^\n]{4,80} schrieb"
    r"[^\n]{0,40}|el [^\n]{4,80} escribió)[ \t]*[:：]?[ \t]*$",
    FLAGS,
)
_FILE = re.compile(
    r"^[ \t]*(?:[#=*-]+[ \t]*)?(?:(?:file|attachment|filename|datei|anhang|archivo|adjunto|文件名?|"
    r"附件)[ \t]*[:：][ \t]*"
    r"[^\n]{1,80}|[`*]{0,2}(?:[\w.-]+/){0,6}[\w.-]{1,60}\.(?:txt|md|markdown|rst|doc|docx|pdf|odt|rtf|html?|csv|"
    r"tsv|json|"
    r"ya?ml|toml|xml|log|ini|py|js|ts|java|c|cpp|h|rs|go|rb|sh|sql|eml|tex|srt|"
    r"vtt)[`*]{0,2}[ \t]*[:：=#*-]{0,4}[ \t]*)$",
    FLAGS,
)
_SHOWN_ZH = re.compile(
    r"^(?!我(?:是|做|在|当|们?公司|们?单位|的(?:工作|职业|专业)|喜欢|负责|学)).{0,12}(?:润色|翻译|翻成|译成|写成|"
    r"扩写|缩写|续写|总结|"
    r"概括|改写|校对|转成|转换|修改|检查|纠错|解释|分析|改成)[^\n:：。！？]{0,24}(?:[:：]|\n)"
    r"|^.{0,6}(?:这个|这段|这篇|这封|下面|以下|如下|原文|网页|文章)[^\n:：。！？]{0,16}[:：]"
    r"|(?:^|(?<=[。！？，]))[^\n:：。！？]{0,12}(?:写|发|转)(?:来)?的(?:[^\n:：。！？]{0,6})?[:：]",
    FLAGS,
)
_SOMEBODY = (
    r"(?:s?he|they|some(?:one|body)|(?:my|our|his|her|their|the|"
    r"an?) (?:[\w-]+ ){0,2}[\w-]+(?: (?-i:[A-ZÀ-Þ])[\w-]+)?|"
    r"(?-i:[A-ZÀ-Þ])[\w-]+(?: (?-i:[A-ZÀ-Þ])[\w-]+)?|er|sie|ella|él|(?:mein\w?|unser\w?|mi|nuestr[oa]) \w+)"
)
_SAYS = (
    r"(?:wrote|writes?|said|says?|texted|texts|sent|sends|replied|replies|answered|posted|posts|tweeted|e-?mailed|"
    r"messaged|"
    r"told|tells|asks?|asked|quoted|commented|claimed|claims|goes|reads?|begins?|starts?|opens?|sings?|"
    r"schreibt|schrieb|sagt|sagte|meint|meinte|antwortete|escribió|escribe|dijo|dice|respondió|contestó)"
)
_SAYER = (
    rf"{_AT_START}(?:(?:and|but|so|then|yesterday|today|now|und|y)[, ]+)*(?!i\b|we\b|ich\b|wir\b|yo\b|"
    rf"my (?:\w+ )?(?:day|week|"
    rf"morning|evening|routine|shift|situation|problem|question|plan)\b){_SOMEBODY} (?:just |then |also |once |"
    rf"hat |ha |me )?"
    rf"{_SAYS}(?: (?!if\b|that\b|whe\w+\b|wh[aoy]t?\b|which\b|how\b|about\b|i\b)[\w-]+){{0,4}}"
)
_SPEECH = re.compile(
    rf"{_SAYER}[ \t]*[:：]"
    r"|[^\n:：.!?]{0,60}\b(?:that|which) (?:begins?|starts?|opens?|reads?|goes|says|beginnt|"
    r"empieza)(?: with)?[ \t]*[:：]"
    r"|(?:他们?|她们?|(?:我的?)?(?:"
    + RELATIONS_ZH.pattern
    + r"|主角|主人公|男主|女主)|(?:^|(?<=[，。]))(?!我|你|话|再|先|老实|坦白)"
    r"[^我你\s，。：:]{2,3})(?:昨天|今天|刚才|刚)?(?:给我|跟我|对我|在[^，。：:]{1,6}里?)?(?:发(?:了|来)?(?:个|"
    r"条)?(?:消息|微信|短信|邮件|"
    r"信息|语音)?|写(?:道|了)?|说|回复|留言|发帖|问)(?:道|说|我|了)*[:：]",
    FLAGS,
)
# What is said in quotation marks right behind this is somebody else's speech, or a sentence to practise on.
SPEECH_BEFORE_A_QUOTE = re.compile(
    rf"(?:{_SAYER}|\b(?:say|translate|pronounce|spell|write|conjugate|decline|phrase|übersetze?|schreibt man|"
    rf"sagt man|dice|"
    r"traduce)|(?:他们?|她们?|"
    + RELATIONS_ZH.pattern
    + r")(?:[^，。我]{0,6})(?:说|写道|写|回复|喊)|翻译|翻一下)[ \t]*[,:：，]?[ \t]*$",
    FLAGS,
)
SPEECH_BEHIND_A_QUOTE = re.compile(
    r"[ \t]*(?:用.{1,5}[语文话](?:怎么|如何)|怎么(?:翻|说|读|写)|是什么意思|(?:in|into|to|auf|en) (?:[A-ZÀ-Þ]\w+|"
    r"español)[ \t]*[?？])"
)
# The user speaks again: of themselves, or to the assistant about the text.
_SPEAKS_AGAIN = re.compile(
    r"[ \t]*(?:(?:ok(?:ay)?|so|and|but|well|now|hm+|thanks|anyway)[,. ]+)*(?:my own|mine|as for me|about me|me,|"
    r"i myself|"
    r"i personally|personally,|in my (?:own )?(?:case|opinion)|by the way|btw|p\.?s\.?[: ]|end of (?:the )?"
    rf"(?:text|quote|{_TEXT})|that(?:['’]s| was| is) (?:the|it|all|his|her|their|what)\b|unlike|back to me|"
    r"what (?:do|would|should) (?:you|i)\b[^\n?]{0,60}(?:think|make of|say|reply|answer|do)\b|how (?:does|"
    r"do) (?:this|that|it)|"
    r"is (?:this|that|it) (?:ok|okay|good|correct|right|true|fine)|(?:any|your) (?:thoughts|opinion|feedback)|"
    r"(?:can|could|would|will) you (?:please )?(?:translate|summari[sz]e|correct|proof|rewrite|reply|write|help me|"
    r"draft|make "
    r"it)|(?:please )?(?:translate|summari[sz]e|proofread|rewrite|correct) (?:it|this|that)|zu mir|ich selbst|"
    r"was mich "
    r"betrifft|mein\w* eigene|übrigens|was meinst du|was hältst du|yo mismo|yo misma|en mi caso|por cierto|"
    r"qué (?:te parece|"
    r"opinas)|我自己|至于我|我本人|我个人|顺便说|对了[，,]|另外[，,]?我|你觉得|你怎么看|请问|帮我|以上)",
    re.IGNORECASE,
)
_OWN_AT_ONCE = re.compile(
    r"[ \t]*(?:my own|as for me|by the way|btw|i myself|end of|ich selbst|por cierto|顺便说|至于我|我自己|"
    r"以上)",
    FLAGS,
)
QUOTATIONS = (
    re.compile(r"“([^”]{1,4000})(?:”|\Z)"),
    re.compile(r"«([^»]{1,4000})»"),
    re.compile(r"„([^“”]{1,4000})[“”]"),
    re.compile(r"[「『]([^」』]{1,4000})[」』]"),
    re.compile(r"(?<![\w\"])\"([^\"]{1,4000})\"(?!\w)"),
    re.compile(r"(?<![^\s(:,;])['‘]((?:[^'‘’\n]|(?<=\w)['’](?=\w)){1,2000})['’](?!\w)"),
)
_SPEAKER = re.compile(r"(?m)^[ \t]*(?P<label>[A-Z]|[甲乙丙丁]|[A-ZÀ-Þ][\w-]{1,20}|[^\W\d_]{1,4})[ \t]*[:：][ \t]*\S.*$")


def presented(message: str, typed: str) -> Iterator[tuple[int, int]]:
    """Where texts stand that are announced as such, as [start, end), in order and apart.

    `typed`: the message with blocks of code and the like already turned into line ends, as long as it was. Of a
    portrait that the user wrote of themselves only the announcement is given: it says nothing, and the rest is theirs.
    """
    position = 0
    for number, (announcement, is_speech) in enumerate(_announcements(typed)):
        start = announcement.end()
        if announcement.start() < position or _ABOUT_ONESELF.search(announcement.group()):
            continue
        if number >= ANNOUNCEMENTS_MAX:
            yield announcement.start(), len(typed)
            return
        if _OWN_PORTRAIT.search(announcement.group()):
            yield announcement.span()
            position = start
            continue
        end = _end_of_delimited(message, typed, start) or _end_of(typed, start)
        if typed[start:end].strip() and (not is_speech or says_i(typed[start:end])):
            yield start, end
            position = end


def _announcements(typed: str) -> list[tuple[re.Match[str], bool]]:
    """In order, each with whether it quotes somebody."""
    kinds = (_REQUEST, _REQUEST_ENDED, _SHOWN, _FILE, _SHOWN_ZH, _SPEECH)
    found = [(match, kind is _SPEECH) for kind in kinds for match in kind.finditer(typed)]
    return sorted(found, key=lambda one: one[0].end())


def says_i(text: str) -> bool:
    """Whether somebody speaks of themselves in it. Asked of a few words, whose language is not sure."""
    return any(FIRST_PERSON[language].search(text) for language in {language_of(text), "en", "de", "zh"})


def dialogue_lines(message: str) -> Iterator[tuple[int, int]]:
    """Lines of a talk between others: "A: …", "B: …", or two names of which one speaks again."""
    lines = list(_SPEAKER.finditer(message))
    labels = [line["label"] for line in lines]
    is_lettered = len({label for label in labels if len(label) == 1}) >= 2
    is_named = len(set(labels)) >= 2 and len(set(labels)) < len(labels)
    if is_lettered or is_named:
        yield from (line.span() for line in lines)


def _end_of_delimited(message: str, typed: str, start: int) -> int | None:
    """Where the quotation or the block ends that a presented text consists of; None: it is not delimited."""
    first = len(message) - len(message[start:].lstrip())
    quotation = next((match for pattern in QUOTATIONS if (match := pattern.match(typed, first))), None)
    if quotation:
        return quotation.end()
    if first == len(message) or typed[first] == message[first]:
        return None
    is_left = (at for at in range(first, len(typed)) if typed[at] == message[at] and not typed[at].isspace())
    return next(is_left, len(typed))


def _end_of(message: str, start: int) -> int:
    """Where the user speaks again, or the end of the message."""
    line = message.find("\n", start)
    after_blank = False
    while line >= 0:
        begin = line + 1
        line = message.find("\n", begin)
        text = message[begin : line if line >= 0 else len(message)]
        if text.strip() and (_OWN_AT_ONCE.match(text) or (after_blank and _SPEAKS_AGAIN.match(text))):
            return begin
        after_blank = not text.strip()
    return len(message)


__all__ = ["QUOTATIONS", "SPEECH_BEFORE_A_QUOTE", "SPEECH_BEHIND_A_QUOTE", "dialogue_lines", "presented", "says_i"]
