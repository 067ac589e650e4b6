"""Part of stage 6: messages that only greet, thank or acknowledge, in English, Chinese, Spanish and German.

Such a message carries no question, so nothing is searched for it. This module must never take a message with a word of
its own ("thanks, and the address?") for a pleasantry: every word has to be a known one.
"""

from __future__ import annotations

import re
import unicodedata

PLEASANTRY_CHARACTERS_MAX = 80  # nothing longer is only a greeting

# Between two bars stands one greeting, thanks or acknowledgement, or what may follow one.
_PHRASES = (
    # English
    r"hi+|hello+|hey+|hiya|howdy|yo|greetings|good (?:morning|afternoon|evening|night|day)|morning|evening|hi there"
    r"|thanks?|thank (?:you|u)|thx|ty|tysm|cheers|much (?:appreciated|obliged)|ta|kudos|bravo|congrats"
    r"|(?:i )?(?:really )?appreciate (?:it|that)|god bless|bless you"
    r"|o+k+(?:ay|ey)?|okie|k+|alright(?:y)?|all (?:right|good|set|clear)|right|sure(?: thing)?|fine|great|perfect|nice"
    r"|cool"
    r"|awesome|excellent|wonderful|lovely|amazing|brilliant|fantastic|super|sweet|neat|wow|yay|hooray|woohoo|good|noted"
    r"|got (?:it|you|that)|gotcha|i see|i understand|understood|(?:that )?makes (?:perfect )?sense|sounds (?:good|great"
    r"|fine)"
    r"|will do|no (?:problem|worries)|never ?mind|nvm|good to know|fair enough|of course|absolutely|exactly|agreed"
    r"|indeed"
    r"|(?:that|this|it) (?:really )?(?:helps|helped|works|worked)|(?:that|this|it) (?:is|was) (?:(?:so|very|really"
    r"|super) )?"
    r"(?:helpful|great|perfect|useful|nice|awesome|all|good|kind)|(?:that'?s|it'?s) (?:(?:so|very|really) )?"
    r"(?:helpful|great|perfect|useful|nice|awesome|all|good|fine|kind|it)"
    r"|yes|yep|yeah|yup|yea|no|nope|nah|bye+|goodbye|bye bye|farewell|take care|have fun|sleep well|sweet dreams"
    r"|see (?:you|ya|u)(?: (?:later|soon|around|tomorrow|then|next time))?|talk (?:to you )?(?:later|soon|tomorrow)"
    r"|ttyl|later|cya|until next time|till (?:tomorrow|then)|welcome|you too|same to you|well done|good (?:one|job"
    r"|work)"
    r"|nice (?:one|work|job)|great (?:job|work)|you(?: a|')re (?:(?:so|very|too|really) )?(?:the best|awesome|great"
    r"|amazing|"
    r"kind|welcome|helpful|a (?:star|legend|lifesaver|genius|gem))|you(?:'ve been)? (?:rock|(?:so |very )?helpful)"
    r"|(?:have|enjoy) (?:a|an|your|the)? ?(?:nice|good|great|lovely|wonderful)? ?(?:day|one|evening|weekend|night|rest)"
    r"|how are you(?: doing)?(?: today)?|how(?: is|'?s) (?:it|everything) going|how have you been|what'?s up|sup|wassup"
    r"|(?:nice|good|great|pleased) to (?:meet|see) you|are you there|anyone there|you there|testing|test"
    r"|nothing else|that(?: i|')s (?:all|it)|that will be all|l+o+l+|l+m+f?a+o+|rofl|(?:ha|he|hi)+h?|hm+|mhm|uh ?huh|oh"
    r"|ah|aha|ooh"
    # what may follow one of those
    r"|(?:a|so|very) (?:lot|much|bunch|million|ton)|so|very|many|really|again|there|then|now|all|everyone|guys|buddy"
    r"|mate|"
    r"friend|man|dude|for (?:now|today|everything|(?:all )?(?:your|the) (?:help|time|support|answer|info|tip|advice))|"
    r"for (?:helping|explaining|that|this|it)|to you|my friend|please|and"
    # Spanish
    r"|hola|buen[oa]s(?: d[ií]as| tardes| noches)?|buen (?:d[ií]a|fin de semana)|(?:muchas|mil|much[ií]simas) gracias"
    r"|gracias(?: a ti)?(?: por (?:todo|la ayuda|tu ayuda))?|vale|de acuerdo|perfecto|genial|estupendo|fenomenal|guay"
    r"|entendido|claro|s[ií]|adi[oó]s|chao|hasta (?:luego|mañana|pronto|la vista)|nos vemos|qu[eé] (?:tal|bien)"
    r"|muy bien"
    r"|(?:muy )?amable|eres (?:el|la) mejor|c[oó]mo est[aá]s|de nada|listo|ok gracias|(?:ja)+j?"
    # German
    r"|hallo(?:chen)?|guten (?:morgen|tag|abend)|gute nacht|moin(?: moin)?|servus|gr[uü](?:ß|ss) (?:gott|dich)|na|tach"
    r"|danke(?: (?:sch[oö]n|sehr|dir|ihnen|euch))?|vielen(?: lieben)? dank|besten dank|herzlichen dank|alles klar|passt"
    r"|prima|gut|sehr gut|gern(?:e)?|verstanden|ja|nein|genau|toll|klasse|spitze|geht klar|okidoki|tsch[uü](?:ss|ß)"
    r"|bis (?:bald|morgen|dann|sp[aä]ter)|sch[oö]n(?:en|es) (?:tag|abend|wochenende)|wie geht(?:'s| es dir)?"
    r"|wiedersehen"
    r"|auf wiedersehen|das (?:hilft|war hilfreich)|du bist (?:der|die) beste"
    # Chinese
    r"|[你您]好[呀啊吗哦]?|大家好|嗨+|哈[喽啰罗]|早+[上安]?好?[呀啊]?|早安|上午好|中午好|下午好|晚上好|晚安[啦呀]?|在吗"
    r"|在不在|在么"
    r"|(?:最近|近来|今天)(?:好吗|怎么样)|吃了吗|好久不见|初次见面|很高兴认识[你您]"
    r"|(?:太|十分|非常|真是|真的?|多)?(?:感)?谢+(?:谢)?[你您]?(?:的帮[助忙]|们)?[啦了哦呀啊哈]?|多谢[啦了]?|感激不尽"
    r"|感恩|三克油"
    r"|(?:太|真|十分|非常)?感谢[你您]?(?:的帮[助忙])?[啦了]?|辛苦(?:[你您])?[啦了]?|麻烦[你您]?[啦了]"
    r"|好+的*[呀啊哦吧呢哈]?|好[啦了嘞滴]|行[吧啊了的]?|嗯+[呢哪]?|哦+|噢+|喔|啊|额|可以[的了]?|没问题|明白了?"
    r"|知道[了啦]?|懂[了啦]?"
    r"|收到[啦了]?|了解了?|对的?|是的?|没[事错][了啦]?|不用[了啦]|没有?了|没别的[了事]?|就这样吧?|先这样吧?|这样啊"
    r"|原来如此|有道理|同意"
    r"|太好了?|太棒[了啦]?|(?:很|真|好)?棒|(?:真|很)?不错|(?:真|好|太)?厉害[了啦]?|(?:太|很)?完美了?|牛+|赞+|给力"
    r"|哇+塞?|佩服|优秀"
    r"|再见|拜+|回头见|回见|明天见|下次(?:见|聊|再聊)|回头聊|改天聊|先走了|去忙了|周末愉快|[你您](?:真|太|最)(?:好|棒"
    r"|厉害)[了啦]?"
    r"|(?:哈|呵|嘿|嘻)+|666+|ok(?:的|了)?"
)
_ONLY_PLEASANTRIES = re.compile(rf"(?:(?:{_PHRASES})\s*)+")
_OPENING = re.compile(
    r"^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks(?: a lot)?|thank you|ok(?:ay)?|great|perfect|cool"
    r"|hola|gracias"
    r"|hallo|danke|[你您]好|谢谢[你您]?|好的|嗯+|早上好)(?: there)?[\s,.!，。！、;；~-]+)+",
    re.IGNORECASE,
)
_NOT_WORDS = re.compile(r"[^\w\s']+|_")
_CONSENT = re.compile(
    r"(?:(?:yes|yep|yeah|yup|yea|sure|ok(?:ay)?|please|absolutely|of course|go ahead|do it|sounds good|s[ií]|claro"
    r"|vale|por favor"
    r"|ja|gern(?:e)?|bitte|genau|klar|好的?|[行对是]的?|可以|嗯+|要|没问题|麻烦了)\s*)+"
)


def is_pleasantry(text: str) -> bool:
    """Whether the text is only greetings, thanks and acknowledgements, or has no word at all ("👍")."""
    if len(text) > PLEASANTRY_CHARACTERS_MAX:
        return False
    words = _words(text)
    return not words or _ONLY_PLEASANTRIES.fullmatch(words) is not None


def is_consent(text: str) -> bool:
    """Whether the text only says yes, which after a question of the assistant's means "do it"."""
    return len(text) <= PLEASANTRY_CHARACTERS_MAX and _CONSENT.fullmatch(_words(text)) is not None


def without_opening(text: str) -> str:
    """The text without a greeting or thanks that it opens with; as it is where nothing else would be left."""
    return _OPENING.sub("", text.lstrip(), count=1) or text


def _words(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text[: 2 * PLEASANTRY_CHARACTERS_MAX]).casefold().replace("\u2019", "'")
    return " ".join(_NOT_WORDS.sub(" ", folded).split())
