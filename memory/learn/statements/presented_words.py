"""The words by which people present a text that is not what they say, and those with which they speak again.

English and Chinese first, German and Spanish reasonably. Only patterns, no decisions: those stand in `presented`. Every
pattern runs in time linear in its text.
"""

from __future__ import annotations

import re

from memory.learn.words.lexicon import RELATIONS_ZH

FLAGS = re.IGNORECASE | re.MULTILINE


def _any(words: str) -> str:
    """One of the words; those that are more than one are written with underscores."""
    return "(?:" + "|".join(word.replace("_", " ") for word in words.split()) + ")"


_AT_START = r"(?:^[ \t]*(?:[-*•#>]+[ \t]+)?|(?<=[.!?;] )|(?<=[。！？；，]))"
_POLITE = r"(?:(?:please|pls|hey|hi|ok|now|bitte|por favor)[, ]+)*"
_COULD_YOU = (
    r"(?:(?:can|could|would|will) you (?:please )?|help me (?:to )?|i(?:['’]d like| want| need) you to |"
    r"(?:kannst|könntest) du (?:bitte )?|(?:puedes|podrías) )?"
)
_TEXT = _any(
    "page text article e-?mail mail message letter paragraph passage snippet sentences? phrase review readme "
    "document post essay poem story tweet comment dialogue conversation transcript lyrics quote excerpt "
    "abstract speech blurb profile bio(?:graphy)? r[ée]sum[ée] cv cover_letter ad(?:vert)? listing complaint "
    "reply statement caption notes? diary entry code log error output json csv file seite artikel nachricht "
    "brief satz absatz aufsatz página texto correo artículo mensaje frase carta párrafo"
)
_THIS = _any("this these that the_following diese[nrs]? folgende[nrs]? est[ea]")
_A_TEXT = rf"(?:{_any('this these that the my diese[nrs]? den die das est[ea] el la')} (?:[\w-]+ ){{0,2}}{_TEXT})"
_WORK_ON_LANGUAGE = _any(
    "summari[sz]e translate tl;?dr proof-?read rewrite rephrase paraphrase polish decode reformat resume traduce "
    "corrige mejora fasse? übersetze? korrigiere? verbessere?"
)
_WORK_ON_A_TEXT = _any(
    "correct tidy improve edit shorten fix review check explain convert extract classify analy[sz]e reply_to "
    "answer read make turn put change see look_at have_a_look_at take_a_look_at revisa lee prüfe? lies"
)
LANGUAGE_NAMES = _any(
    "english german french spanish italian chinese mandarin japanese korean polish thai russian portuguese "
    "dutch arabic turkish latin deutsch englisch französisch spanisch inglés alemán español francés"
)
_UP_TO_THE_COLON = r"[^\n:：.!?]{0,60}(?:[:：]|[.!?]?[ \t]*\n)"

# "Fix this: …", "Check my English: …". "Check this out:" and "Correct: …" present nothing.
REQUEST = re.compile(
    rf"{_AT_START}{_POLITE}{_COULD_YOU}(?:(?:{_WORK_ON_LANGUAGE}\b|sum up (?=\w)){_UP_TO_THE_COLON}|"
    rf"{_WORK_ON_A_TEXT} (?:{_THIS}\b(?! (?:out|carefully|first|in mind)\b)|[^\n:：.!?]{{0,40}}\b(?:{_TEXT}|"
    rf"{LANGUAGE_NAMES}|grammar|spelling|sentiment|tone|mood|below|following|cv|bio|introduction|"
    rf"lebenslauf)\b){_UP_TO_THE_COLON})"
    rf"|{_AT_START}(?:(?:grammar|spelling|spell)[ -]?(?:check|correction)|(?:now )?(?:in|into|to|auf|en|al) "
    rf"{LANGUAGE_NAMES})(?: please| bitte| por favor)?[ \t]*[:：]",
    FLAGS,
)
# "Check this text. …": the text follows in the same line.
REQUEST_ENDED = re.compile(
    rf"{_AT_START}{_POLITE}{_COULD_YOU}(?:{_WORK_ON_LANGUAGE} (?:{_THIS}|{_A_TEXT})|{_WORK_ON_A_TEXT} {_A_TEXT})"
    r"(?: (?:below|please|for me|bitte|(?:in)?to \w+|here|for (?:errors|mistakes|typos|grammar)))*[.!?](?=\s+\S)",
    FLAGS,
)
SHOWN = re.compile(
    rf"{_AT_START}(?:here(?:['’]s| is| are| comes)|below (?:is|are)|attached is|this is|these are|"
    r"i (?:found|got) (?:this|these)|hier (?:ist|sind|kommt)|aquí (?:está|va|tienes)|est[ea] es)\b"
    rf"[^\n:：.!?]{{0,50}}\b{_TEXT}\b[^\n:：.!?]{{0,40}}[:：]"
    r"|^[^\n:：]{0,40}\b(?:this|following|below|attached|pasted|diese[rsn]?|folgende[rsn]?|est[ea]|siguiente)\b"
    rf"[^\n:：]{{0,20}}\b{_TEXT}\b[^\n:：]{{0,30}}(?:[:：](?!//)|\?[ \t]*\n)"
    r"|^[^\n:：]{0,60}\b(?:page|text|article|mail|e-?mail|message|letter|paragraph|passage|snippet|code|log|error)\b"
    r"[^\n:：]{0,60}\?[ \t]*\n"
    rf"|{_AT_START}[^\n:：.!?]{{0,40}}(?:['’]s|s['’]) (?:{_TEXT}|question|words|answer)\b[^\n:：.!?]{{0,30}}[:：]"
    rf"|{_AT_START}(?:{_TEXT}|message|mail) (?:from|by|of) [^\n:：.!?]{{1,30}}[:：]"
    r"|^[ \t]*(?:text|original(?: text)?|user story|song lyrics|haiku|riddle|headline|transcript|excerpt|quote|"
    r"article|passage|paragraph|lyrics|dialogue|log|code|"
    r"output|input|sample)[ \t]*[:：]",
    FLAGS,
)
FORWARDED = re.compile(
    r"^[ \t]*(?:begin forwarded message|-+ ?(?:original|forwarded) message ?-+|-+ ?(?:ursprüngliche|weitergeleitete) "
    r"nachricht ?-+|-+ ?mensaje (?:original|reenviado) ?-+|-*转发(?:的)?邮件-*|on [^\n]{4,80} wrote|"
    r"am [^\n]{4,80} schrieb[^\n]{0,40}|el [^\n]{4,80} escribió)[ \t]*[:：]?[ \t]*$",
    FLAGS,
)
_ENDING = _any(
    "txt md markdown rst doc docx pdf odt rtf html? csv tsv json ya?ml toml xml log ini py js ts java c cpp h "
    "rs go rb sh sql eml tex srt vtt"
)
FILE = re.compile(
    r"^[ \t]*(?:[#=*-]+[ \t]*)?"
    r"(?:(?:file|attachment|filename|datei|anhang|archivo|adjunto|文件名?|附件)[ \t]*[:：][ \t]*[^\n]{1,80}|"
    rf"[`*]{{0,2}}(?:[\w.-]+/){{0,6}}[\w.-]{{1,60}}\.{_ENDING}[`*]{{0,2}}[ \t]*[:：=#*-]{{0,4}}[ \t]*)$",
    FLAGS,
)
SHOWN_ZH = re.compile(
    r"^(?!我(?:是|做|在|当|们?公司|们?单位|的(?:工作|职业|专业)|喜欢|负责|学|翻译过|写过)).{0,12}"
    r"(?:润色|翻译|翻成|译成|写成|扩写|缩写|续写|总结|概括|改写|校对|转成|转换|修改|检查|纠错|解释|分析|改成|改得)"
    r"[^\n:：。！？]{0,24}(?:[:：]|\n)"
    r"|^.{0,6}(?:这个|这段|这篇|这封|下面|以下|如下|原文|网页|文章)[^\n:：。！？]{0,16}[:：]"
    r"|(?:^|(?<=[。！？，]))[^\n:：。！？]{0,12}(?:写|发|转)(?:来)?的(?:[^\n:：。！？]{0,6})?[:：]"
    r"|(?:^|(?<=[。！？，]))[^\n:：。！？]{0,16}(?:怎么[说翻读写]|改错|病句|造句|填空|听写|默写|例句|开头|内容是|"
    r"歌词|"
    r"台词)[^\n:：]{0,6}[:：]",
    FLAGS,
)

_SOMEBODY = (
    rf"(?:s?he|they|some(?:one|body)|{_any('my our his her their the an?')} (?:[\w-]+ ){{0,2}}[\w-]+"
    r"(?: (?-i:[A-ZÀ-Þ])[\w-]+)?|(?-i:[A-ZÀ-Þ])[\w-]+(?: (?-i:[A-ZÀ-Þ])[\w-]+)?|er|sie|ella|él|"
    r"(?:mein\w?|unser\w?|mi|nuestr[oa]) \w+)"
)
_SAYS = _any(
    "wrote writes? said says? texted texts sent sends replied replies answered posted posts tweeted e-?mailed "
    "messaged told tells asks? asked quoted commented claimed claims goes reads? begins? starts? opens? sings? "
    "wants?_to_know wonders? wants?_me_to_ask asked_me_to_ask schreibt schrieb sagt sagte meint meinte "
    "antwortete escribió escribe dijo dice respondió contestó"
)
_OWN_THINGS = _any("day week morning evening routine shift situation problem question plan story")
_SAYER = (
    rf"{_AT_START}(?:(?:and|but|so|then|yesterday|today|now|und|y|in (?:the|a|my|this) [\w-]+|here(?:['’]s| is) what|"
    rf"this is what|look what)[, ]+)*(?!i\b|we\b|ich\b|wir\b|yo\b|my (?:\w+ )?{_OWN_THINGS}\b){_SOMEBODY} "
    rf"(?:just |then |also |once |hat |ha |me )?{_SAYS}"
    r"(?: (?!if\b|that\b|whe\w+\b|wh[aoy]t?\b|which\b|how\b|about\b|for\b|i\b)[\w-]+){0,4}"
)
_SAYER_ZH = (
    rf"(?:他们?|她们?|"
    rf"(?<![给跟对向帮替和])(?<![给跟对向帮替和].)(?<![给跟对向帮替和]..)(?:我的?)?(?:{RELATIONS_ZH.pattern}|主角|"
    rf"主人公|男主|女主)|"
    r"(?:^|(?<=[，。]))(?![我你给跟对向帮替和请话再先]|老实|坦白|补充|更正|说明|总之|简单)[^我你\s，。：:]{2,3})"
)
# Somebody's direct speech: it is foreign if it says "I".
SPEECH = re.compile(
    rf"{_SAYER}[ \t]*[:：]"
    r"|[^\n:：.!?]{0,60}\b(?:that|which) (?:begins?|starts?|opens?|reads?|goes|says|beginnt|"
    r"empieza)(?: with)?[ \t]*[:：]"
    r"|^[ \t]*(?:please )?(?:write|continue|compose|narrate)\b[^\n:：.!?]{0,50}\b(?:first person|monologue|"
    r"dialogue|scene|"
    r"novel|diary|voice of|story)\b[^\n:：.!?]{0,40}[:：]"
    rf"|{_SAYER_ZH}(?:昨天|今天|刚才|刚)?(?:给我|跟我|对我|想|在[^，。：:]{{1,6}}里?)?"
    r"(?:发(?:了|来)?(?:个|条)?(?:消息|微信|短信|邮件|信息|语音)?|写(?:道|了)?|说|回复|留言|发帖|问)(?:道|说|我|"
    r"了)*[:：]",
    FLAGS,
)
GREETING = re.compile(
    r"\s*(?:hi|hello|hey|dear|good (?:morning|evening|day)|hallo|liebe[rs]?|hola|querid[oa]s?|你好|您好|"
    r"嗨)\b[^.!?,，。！\n]{0,30}"
    r"[.!?,，。！\n]+\s*",
    re.IGNORECASE,
)
# What is said in quotation marks right behind this is somebody else's speech, or a sentence to practise on.
SPEECH_BEFORE_A_QUOTE = re.compile(
    rf"(?:{_SAYER}|\b(?:say|translate|pronounce|spell|write|conjugate|decline|phrase|übersetze?|schreibt man|"
    rf"sagt man|dice|"
    rf"traduce)|(?:他们?|她们?|{RELATIONS_ZH.pattern})(?:[^，。我]{{0,6}})(?:说|写道|写|回复|喊)|翻译|翻一下)"
    r"[ \t]*[,:：，]?[ \t]*$",
    FLAGS,
)
SPEECH_BEHIND_A_QUOTE = re.compile(
    r"[ \t]*(?:用.{1,5}[语文话](?:怎么|如何)|怎么(?:翻|说|读|写)|是什么意思|"
    r"(?:in|into|to|auf|en) (?:[A-ZÀ-Þ]\w+|español)[ \t]*[?？])"
)

# A portrait that people write of themselves says "I" and means it; their letters, essays and homework may pretend, and
# address somebody else. So a portrait of one's own is told, whatever is to be done with it.
OWN_PORTRAIT = re.compile(
    r"\b(?:my|our|mein\w*|unser\w*|mis?) (?:[\w-]+ )?(?:cv|r[ée]sum[ée]|bio(?:graphy)?|profile?|cover letter|"
    r"about(?:[ -]me)?|self-?(?:introduction|description|portrait)|introduction|personal statement|lebenslauf|profil|"
    r"steckbrief|vorstellung|currículum|curr[ií]culo|perfil|biografía|presentación)\b|"
    r"我(?:自己)?的?(?:个人)?(?:自我介绍|简历|简介|介绍|资料|求职信|履历)",
    FLAGS,
)
ABOUT_ONESELF = re.compile(
    r"\b(?:about|of|for|on) (?:me|myself|us|ourselves)\b|"
    r"\bmy (?:own )?(?:situation|case|facts|details|background|life|family|plan|data)\b|"
    r"\b(?:über mich|zu mir|zu meiner person|sobre m[ií])\b|关于(?:我(?!们?的?(?:朋友|同事))|本人)|"
    r"我(?:自己|们?家)?的(?:\w{0,2})(?:情况|信息|要求|爱好|习惯|背景|安排|计划|经历|需求)|我自己",
    FLAGS,
)
# The user speaks again after a blank line: of themselves, or to the assistant about the text.
SPEAKS_AGAIN = re.compile(
    r"[ \t]*(?:(?:ok(?:ay)?|so|and|but|well|now|hm+|thanks|anyway)[,. ]+)*(?:my own|mine|as for me|about me|me,|"
    r"i myself|"
    r"i personally|personally,|in my (?:own )?(?:case|opinion)|by the way|btw|p\.?s\.?[: ]|"
    rf"end of (?:the )?(?:text|quote|{_TEXT})|that(?:['’]s| was| is) (?:the|it|all|his|her|their|what)\b|unlike|"
    r"back to me|what (?:do|would|should) (?:you|i)\b[^\n?]{0,60}(?:think|make of|say|reply|answer|do)\b|"
    r"how (?:does|do) (?:this|that|it)|is (?:this|that|it) (?:ok|okay|good|correct|right|true|fine)|"
    r"(?:any|your) (?:thoughts|opinion|feedback)|(?:can|could|would|will) you (?:please )?(?:translate|summari[sz]e|"
    r"correct|proof|rewrite|reply|write|help me|draft|make it)|"
    r"(?:please )?(?:translate|summari[sz]e|proofread|rewrite|correct) (?:it|this|that)|"
    r"zu mir|ich selbst|was mich betrifft|mein\w* eigene|übrigens|was meinst du|was hältst du|"
    r"yo mismo|yo misma|en mi caso|por cierto|qué (?:te parece|opinas)|"
    r"我自己|至于我|我本人|我个人|顺便说|对了[，,]|另外[，,]?我|你觉得|你怎么看|请问|帮我|以上)",
    re.IGNORECASE,
)
SPEAKS_AGAIN_AT_ONCE = re.compile(
    r"[ \t]*(?:my own|as for me|by the way|btw|i myself|end of|ich selbst|por cierto|顺便说|至于我|我自己|"
    r"以上)",
    FLAGS,
)
# Said of the text right behind it: "This is what my client wants."
REMARK = re.compile(
    r"[ \t]*(?:(?:this|that|it) (?:is|was|comes)\b|das (?:ist|war)\b|(?:esto|eso) (?:es|era)\b)[^.!?\n]*[.!]?|"
    r"[ \t]*[这那]是[^。！？\n]*[。！]?",
    re.IGNORECASE,
)
SPEAKER = re.compile(r"(?m)^[ \t]*(?P<label>[A-Z]|[甲乙丙丁]|[A-ZÀ-Þ][\w-]{1,20}|[^\W\d_]{1,4})[ \t]*[:：][ \t]*\S.*$")

__all__ = [
    "ABOUT_ONESELF",
    "FILE",
    "FORWARDED",
    "GREETING",
    "LANGUAGE_NAMES",
    "OWN_PORTRAIT",
    "REMARK",
    "REQUEST",
    "REQUEST_ENDED",
    "SHOWN",
    "SHOWN_ZH",
    "SPEAKER",
    "SPEAKS_AGAIN",
    "SPEAKS_AGAIN_AT_ONCE",
    "SPEECH",
    "SPEECH_BEFORE_A_QUOTE",
    "SPEECH_BEHIND_A_QUOTE",
]
