"""Stage 6: does this request want memory at all? Decides from the words of the last user message, at no cost.

A missed search loses an answer and a needless one costs milliseconds, so only what is surely empty is skipped:
greetings, thanks and bare acknowledgements. Never reads anything but the conversation.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from memory.model import Conversation, Role

PLEASANTRY_CHARACTERS_MAX = 60  # nothing longer is only a greeting


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to search, and the reason as a short label for metrics and receipts."""

    search: bool
    reason: str


# One greeting, thanks or acknowledgement each; a message of nothing but these carries no question.
_PLEASANTRIES = (
    # English
    r"hi+|hello+|hey+|hiya|howdy|yo|greetings|good (?:morning|afternoon|evening|night|day)|hi there",
    r"hello there|hey there",
    r"thanks?|thank you|thx|ty|cheers|much appreciated|thanks a (?:lot|bunch|million)|many thanks|so much",
    r"very much|a lot",
    r"ok+|okay|okey|k|kk|alright|all right|right|sure|fine|great|perfect|nice|cool|awesome|excellent",
    r"wonderful|lovely",
    r"got it|i see|understood|makes sense|sounds good|will do|no problem|never ?mind|good to know|that helps",
    r"yes|yep|yeah|yup|no|nope|bye+|goodbye|see you|see ya|later|good one|well done|welcome|you too",
    r"have a (?:nice|good|great) (?:day|one|evening|weekend)",
    r"how are you(?: doing)?(?: today)?|how is it going|how'?s it going|what'?s up|sup|nice to meet you",
    # Chinese
    r"你好[呀啊吗]?|您好|嗨|哈[喽啰罗]|早上?好?|早安|上午好|中午好|下午好|晚上好|晚安|在吗|在不在|最近好吗",
    r"谢谢[你您]?[啦了]?|多谢[啦了]?|感谢|非常感谢|太感谢了?|辛苦[啦了]?|麻烦[你您]?了",
    r"好的?[呀啊哦吧呢]?|好[啦了嘞]|行[吧啊]?|嗯+|哦+|噢|可以[的了]?|没问题|明白了?|知道了?|懂了?|收到|了解了?|对的?|是的?|没事了?|不用了",
    r"太好了?|太棒了?|很?棒|不错|厉害|完美|再见|拜拜|回头见|回见|哈+",
    # Spanish
    r"hola|buen[oa]s(?: d[ií]as| tardes| noches)?|(?:muchas |mil )?gracias|vale|de acuerdo|perfecto|genial",
    r"entendido|claro|s[ií]|adi[oó]s|hasta luego|qu[eé] tal|muy bien",
    # German
    r"hallo|guten (?:morgen|tag|abend)|gute nacht|moin|servus|danke(?: sch[oö]n| sehr)?|vielen dank",
    r"alles klar|passt|super|prima|gut|verstanden|ja|nein|tsch[uü]ss|bis bald|wie geht'?s",
)
_ONLY_PLEASANTRIES = re.compile(rf"(?:(?:{'|'.join(_PLEASANTRIES)})\s*)+")
_NOT_WORDS = re.compile(r"[^\w\s']+|_")


def decide(conversation: Conversation) -> Decision:
    """Search, unless there is no question of the user's to search for."""
    if conversation.messages[-1].role == Role.TOOL:
        return Decision(search=False, reason="tool_result")
    text = conversation.last_user_text()
    if not text.strip():
        return Decision(search=False, reason="no_question")
    if is_pleasantry(text):
        return Decision(search=False, reason="greeting")
    return Decision(search=True, reason="question")


def is_pleasantry(text: str) -> bool:
    """Whether the text is only greetings, thanks and acknowledgements (English, Chinese, Spanish, German)."""
    if len(text) > PLEASANTRY_CHARACTERS_MAX:
        return False
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    words = " ".join(_NOT_WORDS.sub(" ", folded).split())
    return not words or _ONLY_PLEASANTRIES.fullmatch(words) is not None
