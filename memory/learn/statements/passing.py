"""What is so only for the moment: a mood, a hunger, the error on the screen, an opinion of what was just said.

Nothing of it would help in a chat next month. A cause or anything else that lasts beside it ("tired since I work
nights") makes it worth keeping, so only clauses that say nothing more are meant here. Pure.
"""

from __future__ import annotations

import re

from memory.learn.words.lexicon import RELATIONS, RELATIONS_ZH

_EN_DEGREE = (
    r"(?:(?:so|really|very|a (?:bit|little)|kind of|kinda|pretty|quite|super|too|just|still|feeling|already|getting|"
    r"totally|completely|absolutely|also) )*"
)
_EN_MOMENT = (
    r"(?:[ ,]+(?:today|tonight|now|right now|just now|at the moment|this (?:morning|afternoon|evening)|already|again|"
    r"lol|haha|man|too|though|honestly|and|but|here))*"
)
_EN_MOOD = (
    r"(?:tired|sleepy|exhausted|hungry|starving|thirsty|bored|happy|sad|glad|excited|angry|annoyed|upset|"
    r"stressed(?: out)?|"
    r"frustrated|nervous|confused|lost|stuck|cold|hot|busy|lazy|sick|drunk|hung ?over|grumpy|fine|ok(?:ay)?|good|great|"
    r"bad|awful|sorry|ready|sure|curious|surprised|impressed|relieved|overwhelmed|late|early|back|home|done|"
    r"in a (?:hurry|rush|(?:good|bad|great) mood)|running late|out of (?:time|ideas)|(?:half )?asleep|awake|"
    r"worn out|proud of (?:it|that|this)|happy (?:with|about) (?:it|that|this))"
)
_EN_MEANS = (
    r"(?:on (?:the|my) (?:train|bus|plane|way(?: home| there| to \w+)?|phone|couch|sofa)|"
    r"at (?:the )?(?:airport|station|supermarket|checkout|bus stop)|in (?:bed|a meeting|the (?:car|queue|line|shower)))"
)
_EN_PROGRAM = (
    r"(?:(?:python|java|rust|go|c\+\+|js|sql|bash|r|own|whole|new|unit|first|last) )?(?:code|script|program|quer(?:y|"
    r"ies)|"
    r"build|function|tests?|loop|regex|formula|compiler|terminal|console|docker(?:file)?|container|pipeline|job|"
    r"notebook)"
)
_EN_FAULT = (
    r"(?:(?:just |now |still |suddenly )?(?:(?:does(?:n['’]t| not)|do(?:n['’]t| not)|won['’]t|is(?:n['’]t| not)|"
    r"will not) (?:compile|run|work|start|load|build|finish|match|return|compiling|running|working|loading)|"
    r"(?:keeps?|is) (?:crashing|failing|hanging|looping|throwing|giving|freezing|broken|slow|stuck)|"
    r"(?:crash(?:es|ed)|fail(?:s|ed)|hangs|froze|broke|throws|returns|gives))\b[^.;!?]{0,60})"
)
_ENGLISH = re.compile(
    rf"(?:i(?:['’]m| am| feel| felt|['’]m feeling| am feeling) {_EN_DEGREE}{_EN_MOOD}{_EN_MOMENT}|"
    rf"i(?:['’]m| am) {_EN_DEGREE}{_EN_MEANS}{_EN_MOMENT}|"
    r"i(?:['’]m| am) (?:not sure|unsure|not convinced)(?: (?:about|of) (?:that|this|it|which \w+))?|"
    r"i(?:['’]m| am) stuck (?:on|at|with|in) (?:question|step|line|level|part|this|that|it|the)\b.{0,40}|"
    r"i(?:['’]ve)? (?:had|am having|['’]m having) a (?:really |very )?(?:bad|rough|good|great|long|busy|hard|"
    r"terrible|nice) "
    r"(?:day|morning|night|week)(?: at work)?(?: today)?|"
    rf"i (?:think|guess|believe|feel like|find) (?:that |this |it )?(?:that|this|it)(?:['’]s| is| was| looks| sounds| "
    r"makes| works| could| would| might| should)?\b[^,;:]{0,40}|"
    r"i (?:was )?(?:think|thinking|thought) (?:about )?(?:that|this|it|so)(?: too| as well| already)?|"
    r"i(?:['’]m| am| was)?(?: now| just| still| also)? ?(?:get(?:ting)?|got|see(?:ing)?|saw|hit(?:ting)?|"
    r"run(?:ning)? into|"
    r"ran into|having|have(?= an? )) (?:an?|the|this|that|some|lots of|another|\d+)? ?(?:\w+ ){0,2}"
    r"(?:errors?|exceptions?|warnings?|stack ?traces?|tracebacks?|time-?outs?|\w*(?:Error|Exception)|40[0-9]|"
    r"50[0-9])\b.*|"
    r"i (?:ran|tried|copied|pasted|executed|compiled|re-?started|installed) (?:it|that|this|your \w+|the (?:code|"
    r"script|"
    r"command|query))\b.*|"
    rf"(?:my|our|the) {_EN_PROGRAM} {_EN_FAULT}|"
    r"i(?:['’]ll| will| might|['’]m going to) (?:try|use|take|go with|pick|choose) (?:it|that|this|the (?:first|"
    r"second|third|"
    r"last|other|new) (?:one|option|version|idea|draft|suggestion))\b[^,;]{0,20}|"
    r"i(?:['’]ll| will) (?:be right back|be back|let you know|get back to you|come back|ask (?:you )?(?:later|again|"
    r"tomorrow))\b[^,;]{0,20}|"
    r"i(?:['’]m| am) (?:going|off|heading) to (?:bed|sleep|lunch|dinner)(?: now)?|"
    r"i(?: need| have|['’]ve got|['’]m about) to (?:go|run|leave|hurry|sleep)(?: now| soon| in (?:a|\d+) \w+)?|"
    r"i(?:['’]ve)? just (?:finished|had|ate|woke up|got (?:up|home|back))(?: (?:lunch|dinner|breakfast|coffee|a \w+))?|"
    r"i(?:['’]m| am) (?:still |just )?(?:reading|looking at|going through|checking|trying) (?:it|that|this|your \w+|"
    r"the "
    r"(?:answer|code|text))|"
    r"i (?:can['’]?t|cannot|could(?:n['’]t| not)) (?:find|see|open|read) (?:it|that|this|the (?:button|menu|file|link|"
    r"option|page|setting))\b[^,;]{0,30}|"
    r"my (?:head|stomach|back|throat|neck|tummy|tooth|ear|eyes?|feet|foot|legs?|hands?|nose) (?:hurts?|aches?|"
    r"is (?:sore|killing me|"
    r"running)|are (?:sore|killing me)) (?:today|now|right now|tonight|at the moment|this (?:morning|evening))|"
    r"i(?:['’]m| am) (?:working on|doing) (?:my|some|the) (?:homework|assignment|exercise)s?)",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    r"(?:我|我们|咱们?)?(?:今天|现在|这会儿|此刻|刚才|刚刚)?(?:我|我们)?(?:有点儿?|好|很|真|太|非常|特别|挺|超|快|都)*"
    r"(?:累|困|饿|渴|开心|高兴|难过|无聊|烦|生气|紧张|着急|郁闷|兴奋|激动|冷|热|忙|懵|晕|头大|头疼|崩溃|心情(?:很|不)?(?:好|差|糟)|没空|"
    r"赶时间|迟到|卡住)(?:了|死了?|啊|呀|呢|哦|极了|得很|坏了|透了)*|"
    r"(?:我|我们)?(?:觉得|认为|感觉)(?:这|那|你)(?:个|样|种|说的|次)?[^，,；;]{0,4}?(?:主意|想法|方案|回答|建议|做法|说法)?[^，,；;]{0,3}?"
    r"(?:不错|可以|挺好|很好|还行|不行|不好|有道理|有用|对|奇怪)(?:的|了|啊)?|"
    r"(?:我|我们)?的?(?:代码|程序|脚本|测试)(?:又|还是?|突然|刚)?(?:报错|跑不起来|跑不通|"
    r"运行不了|编译不过|不能运行|崩溃?|卡住?|打不开|没反应|挂|死机)了?|"
    r"(?:我|我们)(?:这边|这里|刚才|刚刚|刚|又)?(?:遇到|碰到|收到|看到|得到)了?(?:一?个)?.{0,8}(?:报错|错误|异常|警告|问题)了?|"
    r"(?:今天|刚才|这会儿)(?!.*[我咱])[^，,]{1,8}(?:好|真|太(?!太)|特别)[^，,]{1,3}(?:啊|呀|了|哦)|"
    r"(?:今天|现在|外面|这两天)?的?天气.{0,8}|(?:我靠|卧槽|我去|我的天|天哪|妈呀)(?:[，,！!][^我]{0,12})?|"
    r"[这那]个?[^，,]{1,8}我(?:看不懂|没看懂|不会|不懂|搞不懂)|"
    r"我(?:在|正在)(?:等.{1,4}|路上|开会|地铁上|公交上|车上|吃饭|洗澡|排队)|"
    r"我(?:先|要|得|该)(?:去)?(?:睡(?:觉)?|走|吃饭|忙|下线|洗澡)(?:去)?了|"
    r"我(?:试试|试一下|再试试|再想想|考虑一下|看一下|看看)(?:吧|再说)?|"
    r"我(?:待会儿?|等会儿?|一会儿?|晚点|明天)再(?:来|问|说|看)(?:你)?",
)
_GERMAN = re.compile(
    r"(?:ich bin|mir ist|ich fühle mich|ich hab(?:e)?) (?:(?:heute|gerade|jetzt|so|sehr|echt|total|ein bisschen|etwas|"
    r"ziemlich|richtig|wieder) )*(?:müde|hungrig|hunger|durst|kalt|warm|heiß|langweilig|schlecht|traurig|froh|"
    r"glücklich|"
    r"gestresst|genervt|spät dran|in eile|unterwegs|verwirrt|schlapp)(?: (?:heute|gerade|jetzt))?|"
    r"mein(?:e|en)? (?:code|skript|programm) (?:läuft|geht|funktioniert|kompiliert|startet) (?:gerade )?nicht.{0,20}",
    re.IGNORECASE,
)
_SPANISH = re.compile(
    r"(?:estoy|me siento|tengo) (?:(?:muy|tan|un poco|bastante|hoy|ahora) )*(?:cansad[oa]|aburrid[oa]|triste|"
    r"content[oa]|"
    r"feliz|estresad[oa]|hambre|sed|sueño|frío|calor|prisa|perdid[oa]|confundid[oa]|list[oa])(?: (?:hoy|ahora|ya))?|"
    r"mi (?:código|script|programa) no (?:funciona|compila|arranca|va).{0,20}",
    re.IGNORECASE,
)
# What makes a state more than one of today.
_LASTS = re.compile(
    r"\b(?:every|each|always|usually|often|since|because|whenever|for (?:years|months|weeks|days)|chronic\w*|immer|"
    r"oft|seit|weil|"
    r"siempre|desde|porque)\b|[每因]|总是?|一直|经常|老是|常常|自从",
    re.IGNORECASE,
)
_INTERJECTIONS = re.compile(
    r"^(?:(?:ugh|oh|ah|aw+|hmm+|man|wow|lol|haha+|god|omg|phew|ach|uff?|哎呀?|唉|啊|嗯)[\s,，!！]+)+", re.IGNORECASE
)
_ALL = (_ENGLISH, _CHINESE, _GERMAN, _SPANISH)


def is_passing(clause: str) -> bool:
    """Whether the clause says only what will be over tomorrow, and nothing beside it."""
    bare = _INTERJECTIONS.sub("", clause.strip(" \t,.!…~，。！～;；:)("))
    if _LASTS.search(bare) or RELATIONS.search(bare) or RELATIONS_ZH.search(bare):
        return False
    return any(pattern.fullmatch(bare) for pattern in _ALL)


__all__ = ["is_passing"]
