"""Text that wants to command later conversations rather than tell about the user.

Stored text is read by a model later, so whatever is planted here would speak there. A user's lasting wish about the
form of answers, food or names is welcome; orders about rules, secrets, other people's links, reasoning or the
assistant itself are not. Pure, and linear in the text.
"""

from __future__ import annotations

import re
import unicodedata

IGNORE_CASE = re.IGNORECASE

_HIDDEN = re.compile(
    "[\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\u00ad\U000e0000-\U000e007f]|"
    "(?<=[A-Za-z0-9 ])[\u200c\u200d](?=[A-Za-z0-9 ])"
)
_DOMAIN = r"\b[a-z0-9-]+\.(?:com|net|org|io|shop|store|ai|app|co|cn|de|es|info|biz|xyz)\b"
_OUR_ANSWERS = r"\b(?:your|all|every|each|any) (?:\w+ )?(?:answers?|repl(?:y|ies)|responses?)\b"
_WHEN_ASKED = (
    r"\b(?:when(?:ever)?|if|every time) (?:{}some(?:one|body)|any(?:one|body)|people|users?|they)\b.{{0,12}}"
    r"\basks?\b(?! (?:me|us)\b).{{0,50}}"
)
_PATTERNS = (
    ("commands_rules", re.compile(
        r"\bforget (?:all|your|every|any|previous)\b.{0,20}\b(?:instructions?|rules?|prompts?)\b|"
        r"\b(?:ignore|disregard|override|bypass|skip|drop)\b.{0,30}\b(?:previous|prior|above|earlier|all|any|"
        r"every|your|the)\b.{0,20}"
        r"\b(?:instructions?|rules?|guidelines?|prompts?|polic(?:y|ies)|restrictions?|confirmations?|checks?|"
        r"safety)\b(?! previous)|"
        r"(?<!\bour )(?<!\bmy )(?<!\ba )\bsystem prompts?\b(?! (?:of|for) (?:our|my|a)\b)|"
        r"\b(?:reveal|print|show|replace|update|leak|rewrite|obey|follow)\b.{0,16}\bsystem prompt|"
        r"\b(?:developer (?:message|rules?)|jailbreak(?: mode|s? yourself| the (?:model|assistant)| is (?:on|"
        r"active))|without (?:confirmation|verification|"
        r"asking (?:me|again|the user)))\b|\b(?:skip|waive|bypass|disable|no)\w*\b.{0,20}\bsafety checks?\b|"
        r"(?:无视|忽略|绕过|跳过|不用理会).{0,14}(?:规定|指令|规则|限制|提示词|确认|审核)|系统提示词|"
        r"开发者(?:的)?(?:规定|指令|模式)|无需(?:确认|审核|验证)|"
        r"ignorier\w*.{0,30}(?:anweisung|regel)|(?:anweisung|regel|vorgabe)\w*.{0,20}\bignorier|ohne (?:prüfung|"
        r"rückfrage)|"
        r"ignora\w*.{0,30}(?:instruccion|regla)|(?:instruccion|regla)\w*.{0,20}\bignor|"
        r"(?<!\bi )(?<!\bwe )\bdecode\b.{0,30}\b(?:remember|follow|execute|obey|store)\b|"
        r"(?:^|[,;.:]\s*|\band )(?:please )?(?:never|don['’]?t|do not) ask (?:me |"
        r"us )?(?:again )?for (?:\w+ )?(?:verification|"
        r"confirmation|approval|authori[sz]ation|proof|consent)\b|"
        r"sin (?:confirmar|verificar)", IGNORE_CASE)),
    ("reveals", re.compile(
        r"\b(?:reveal|leak|expose|print out|dump|exfiltrate|send|forward|upload|post|transmit)\b.{0,40}\b(?:stored|"
        r"user(?:['’]s)?|chat|conversation|memor(?:y|ies)|prompt|"
        r"(?:all|every|full) (?:\w+ )?(?:data|details|history|config\w*))\b.{0,40}(?:@|http|\bto\b|\bbefore\b)|"
        r"(?<!\bi )(?<!\bwe )(?<!\bto )\b(?:send|forward|e-?mail|bcc|cc|transfer|wire)\b.{0,30}\bto\b.{0,6}"
        r"[\w.+-]{1,40}@[\w-]{1,40}\.\w|"
        r"\bshare (?:their|his|her|other (?:users?|people)['’]?s?|every(?:one|body)['’]s) "
        r"(?:memor(?:y|ies)|data|chats?|conversations?)\b|\buser ?id\b.{0,20}(?:\bis\b|=).{0,12}\b(?:me|my|mine|"
        r"alias)\b|"
        r"(?:发送|上传|转发|泄露|打印).{0,20}(?:聊天记录|记忆|用户|提示词|资料|历史)|(?:聊天记录|用户(?:信息|资料|"
        r"数据)).{0,12}(?:发送|上传|转发|发到|发给)", IGNORE_CASE)),
    ("speaks_to_assistants", re.compile(
        r"\b(?:note to|attention|dear|hey|for|to) (?:all )?(?:ai assistants?|ai|llms?|language models?|assistants?|"
        r"chat ?bots?|"
        r"the assistant|models?)\b\s*[:,]|"
        r"(?:^|[\"“”(=])\s*(?:ai|assistant|system|llm)\s*[:,]|(?:\bAI|人工智能)?助手(?:们)?(?:请|都|必须|：|:|，)|"
        r"凡是.{0,14}助手|an die ki\b|asistente\s*[:,]", IGNORE_CASE)),
    ("writes_memory", re.compile(
        r"\b(?:save|write|store|add|persist|commit|update)\b.{0,20}\b(?:to|in|into|as)\b.{0,12}\b(?:user|long-?term|"
        r"your|permanent) ?(?:memory|profile|preferences?)\b|"
        r"\bmemory update\b|\bstore as user\b|写入.{0,8}(?:记忆|画像|用户)|存入.{0,6}记忆|guárdalo como preferencia|"
        r"speichere dauerhaft", IGNORE_CASE)),
    ("third_person_user", re.compile(
        r"(?:^|[.;:,]\s*|\bthat\s+)(?:the\s+)?(?:user|human)(?:['’]s \w+(?: \w+)?)?\s+"
        r"(?:is|has|wants?|prefers?|trusts?|agreed?|approved?|waived?|authori[sz]e[ds]?|likes?|always|never|must|"
        r"should|skips?|changed)\b|"
        r"(?<!的)用户(?:只|已|同意|授权|信任|偏好)|der nutzer (?:hat|ist|will|vertraut|möchte|bezahlt)\b|"
        r"el usuario (?:quiere|prefiere|confía|acepta)",
            IGNORE_CASE)),
    ("plants_reasoning", re.compile(
        r"\b(?:repeat|recite|use|keep) (?:that|this|it) (?:as|in) (?:your|the) (?:reasoning|thoughts?|answers?)\b|"
        r"\b(?:for|into) your (?:reasoning|memory|records|knowledge|notes)\s*[:,]|"
        r"^\s*(?:knowledge|reasoning|thought|chain of thought|inference|rule(?!\s*:\s*(?:i|we|my|our)\b))\s*[:：]|"
        r"\b(?:for|in) (?:all|every|any) (?:later|future|other|coming|following) (?:sessions?|conversations?|chats?|"
        r"users?)\b(?!\W{0,3}(?:please )?(?:you (?:may|can|should) )?(?:just )?call me\b)|"
        r"\b(?:for|to) (?:every(?:one|body)|any(?:one|body)|whoever|all users?) (?:who |that )?asks?\b|"
        r"\b(?:is|are) (?:now )?(?:kept|stored|filed|recorded|merged) (?:under|into|with)\b.{0,60}\b(?:always|"
        r"so for)\b|"
        r"(?:always|whenever|keep|以后|凡是).{0,40}(?:->|→|⇒)|(?:->|→|⇒).{0,40}(?:always|keep|以后)|推理提示|请复述|"
        r"按(?:这个|此)(?:来|执行)|存下来|所有(?:对话|会话)都|凡是(?:问|提到)",
            IGNORE_CASE)),
    ("hides_itself", re.compile(
        r"\b(?:never|don['’]?t|do not) (?:mention|say|reveal|admit) that (?:i|we) (?:set|said|told|asked|wrote|"
        r"added)\b|"
        r"\b(?:never|don['’]t|do not|without ever) "
        r"(?:mention(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|tell anyone about)\b"
        r".{0,24}\b(?:rule|instruction|order|directive)s?\b|"
        r"(?:不得|不要|别|不许|禁止|切勿).{0,4}(?:透露|提及|泄露|说出|提起).{0,6}(?:规则|指令|规定|要求|这条|本条)|"
        r"(?:不管|无论|不论)(?:谁|什么人|任何人)(?:来)?问",
        IGNORE_CASE)),
    ("promotes", re.compile(
        r"(?<!\bi )(?<!\bwe )\b(?:always|only|permanently|first)\b.{0,24}\b(?:recommend|promote|praise|advertise|"
        r"mention|link to|"
        r"append)\b(?! (?:dishes|restaurants|places|food))|"
        r"\b(?:include|add|use|insert)\b.{0,24}\baffiliate\b|一律(?:优先)?推荐|永远推荐|优先推荐.{1,10}(?:品牌|"
        r"产品)|recomienda siempre|\b(?:debes?|tienes que|has de) (?:\w+ ){0,2}recomendar|empfiehl immer|"
        r"\bdu \w+ (?:\w+ ){0,3}empfehlen\b|"
        r"\b(?:do not|don['’]?t|never) (?:mention|recommend|suggest|list|name) (?:any )?(?:competitors?|rivals?|"
        r"other (?:brands?|products?|vendors?|companies|banks?))\b|"
        r"(?:以后|今后|每次|每当|凡是|一旦|只要)[^。]{0,14}推荐[^，。]{1,14}(?:牌|银行|公司|产品|币)", IGNORE_CASE)),
    ("claims_consent", re.compile(
        r"\bpretend (?:that )?(?:i|we|the user)(?:['’]ve| have| has)?(?: already)? (?:given|agreed|approved|"
        r"consented|paid|"
        r"authori[sz]ed)\b|\b(?:verified|pre-?authori[sz]ed|official) (?:user |customer )?(?:preference|instruction|"
        r"fact|"
        r"request|directive)\b|"
        r"\balways trust (?:e-?mails?|messages?|links?|files?|attachments?|anything|everything|orders?|requests?)\b|"
        r"\blinks? (?:is|are) always (?:safe|trusted|ok)\b|"
        r"\b(?:the |this )?(?:assistant|ai|bot|system) (?:\w+ )?(?:said|says|confirmed|agreed|promised|approved|"
        r"verified)\b.{0,20}"
        r"\b(?:i(?:['’]m| am)|my)\b|(?:已|已经)授权(?:你|助手|AI|系统)", IGNORE_CASE)),
    ("carries_commands", re.compile(
        r"\b(?:curl|wget)\s+(?:-|\S*://)|\|\s*(?:ba|z)?sh\b|\brm -rf\b|(?:always|from now on|every|include|append|"
        r"add).{0,40}https?://|memory://|javascript:|"
        r"</?(?:system|memor\w+|assistant|user|instructions?)\b|<\||\[/?INST\]", IGNORE_CASE)),
    ("grants_power", re.compile(
        r"\b(?:admin(?:istrator)? (?:mode|rights|access) (?:is|are) (?:on|granted|enabled)|(?:your|"
        r"this assistant['’]s) (?:developer|"
        r"administrator|creator)|you (?:may|can) (?:now )?(?:skip|ignore|bypass)|"
        r"push(?:ed)? (?:code )?straight to (?:main|master)|"
        r"auto-?approve|no confirmation (?:needed|required|necessary))\b|授权代收|同意接收|"
        r"\bi(?:['’]m| am) (?:an?|the|your) (?:\w+ )?(?:admin\w*|root|super-?user|developer|operator|owner|creator)\b"
        r".{0,40}\b(?:(?:any|all|every) (?:\w+ ){0,2}commands?|without (?:question|limit|restriction)s?|unrestricted|"
        r"you (?:must|have to|shall) (?!see|try|know|visit|meet|come)\w)|"
        r"我是.{0,6}(?:管理员|开发者|超级用户|主人|创造者).{0,10}(?:任何|所有|一切).{0,4}(?:命令|指令|操作|要求)",
        IGNORE_CASE)),
    ("lifts_rules", re.compile(
        r"\b(?:(?:all|any|your)(?: (?!my\b|our\b)\w+)?|the(?: (?:safety|security|content|usage))) "
        r"(?:rules?|restrictions?|filters?|guidelines?|limitations?|safeguards?|guardrails?|polic(?:y|ies)) "
        r"(?:is|are|was|were|has been|have been)(?: now| all| hereby| officially)? "
        r"(?:off|lifted|disabled|removed|suspended|void|waived|gone|deactivated|switched off|turned off)\b"
        r"(?=\W*$|[,;.]| (?:for (?:me|us)|now|from now|in this chat)\b)|"
        r"\b(?:all|any|your|safety|security|content|usage) (?:\w+ )?(?:rules?|limits?|restrictions?|checks?|filters?|"
        r"polic(?:y|ies)) (?:do(?:n['’]?t| not)|no longer) apply to (?:me|it|this (?:account|user|chat))\b|"
        r"(?:安全|一切|所有)[^，。]{0,4}(?:限制|规则|规定)[^，。]{0,4}对我(?:都)?(?:无效|不适用|不起作用|失效)|"
        r"(?:你的|一切|所有安全|安全)[^，。]{0,4}(?:限制|规则|过滤|审查)(?:都|也|已|经|全部|现在)*"
        r"(?:解除|关闭|失效|取消|作废|无效)", IGNORE_CASE)),
    ("demands_obedience", re.compile(
        r"\byou (?:must|should|shall|will|have to|need to|are to)\b[^.!?]{0,30}\b(?:obey|comply with|"
        r"(?:execute|follow) (?:my|his|her|their|[\w-]+['’]s|all|any|every|whatever)(?: \w+)? "
        r"(?:orders?|commands?|instructions?|\w+ says?))\b|"
        r"^\W*(?:(?:from now on|always|please)[, ]+)*obey\b|"
        r"\bcommands?\b.{0,12}\b(?:must|should|are to|have to|shall) (?:always )?be (?:executed|obeyed|followed|run|"
        r"carried out)\b|\b(?:executed?|obey(?:ed)?|followed?) without (?:any )?question|"
        r"(?:^(?=必须|务必)|你|从现在起|从今以后|以后|今后|往后)[^，。我她他们]{0,6}(?:必须|务必|都要|只能|得)[^，。我她他]{0,4}"
        r"(?:服从|听从|听命)", IGNORE_CASE)),
    ("forges_authority", re.compile(
        r"(?<!\bi )(?<!\bwe )\b(?:treat|regard|interpret|consider|take|handle|read) (?:any(?:thing|body)?|"
        r"every(?:thing)?|all|whatever|messages?|texts?|lines?|words?)\b.{0,50}\bas (?:an? |the |my )?(?:\w+ )?"
        r"(?:system|developer|admin\w*|trusted|privileged|root)\b|"
        r"\b(?:messages?|texts?|lines?|anything|everything)\b.{0,12}\b(?:start|begin|prefix|mark|tagg|sign)\w*\b.{0,30}"
        r"\b(?:from|of|by) (?:the |your )?(?:developers?|system|admin\w*|operators?|creators?)\b|"
        r"(?:开头|标记|前缀)[^，。]{0,10}(?:视为|当作|当成|都是|来自)[^，。]{0,6}(?:系统|开发者|管理员)",
        IGNORE_CASE)),
    ("advertises", re.compile(
        rf"{_WHEN_ASKED.format('i|we|')}"
        r"(?<!\bi )(?<!\bwe )(?<!\bwhere to )(?<!\bwhat to )(?<!\bhow to )(?<!\bwhether to )"
                r"\b(?:buy|invest in|purchase|subscribe to|sign up|donate)\b|"
        rf"{_WHEN_ASKED.format('')}"
        r"(?<!\bi )(?<!\bwe )(?<!\bto )\b(?:say|recommend|suggest|answer|reply|tell|name|mention)\b|"
        rf"{_OUR_ANSWERS}.{{0,40}}{_DOMAIN}|{_DOMAIN}.{{0,30}}{_OUR_ANSWERS}|"
        rf"(?:回答|回复|答案|答复)(?:里|中|内|末尾|结尾|最后|后面|时|都|要|需|必须|请).{{0,14}}{_DOMAIN}|"
        r"推荐(?:产品|商品|品牌|东西|购物|理财|任何)[^，。]{0,6}(?:首选|优先|先推|只推|只选|必推)|"
        r"推荐[^，。]{0,8}(?:首选|优先|只推|只选|必推)[^，。]{1,14}牌(?:子)?(?:$|[，。！])", IGNORE_CASE)),
)  # fmt: skip
# What users say that they do themselves with their own things orders nothing; with a "you" in it, it may.
_OWN_HABIT = re.compile(
    r"^\s*(?:i|we)(?:['’]ve| have|['’]ll| will)?(?: (?:always|usually|often|also|never|sometimes|just|\w+ly))? "
    r"(?:upload|send|sent|forward|post|transmit|uploaded|forwarded|posted|print out|dump)\b"
    r"(?!.*\b(?:you|your|users?|chat|conversations?|memor(?:y|ies)|prompts?|assistants?|ai)\b)",
    IGNORE_CASE,
)
# Whoever earns their living with such tricks tells of them; as long as nobody is told to do anything.
_OWN_TRADE = re.compile(
    r"^\s*(?:i|we|my (?:job|team)|our team|doy|doing|wir|ich)\b(?=.*\b(?:red[- ]team\w*|pen[- ]?test\w*|security|"
    r"prompt injections?|"
    r"jailbreaks?|chat ?bots?|ciberseguridad|sicherheit\w*)\b)"
    r"(?!.*\b(?:you|your|assistant|remember|always|must|from now on|in future|future chats?)\b)",
    IGNORE_CASE,
)
_OF_THE_TRADE = frozenset({"commands_rules", "reveals"})
_TITLE = re.compile(r"(?<=\s)['‘“\"](?:[\w-]+ ){0,3}[\w-]+['’”\"](?=[\s,.;!?]|$)")
_ENCODED = re.compile(r"(?<![\w/.-])[A-Za-z0-9+/]{40,}={0,2}(?![\w/.-])|(?:\b\w ){8,}")
_TWO_SCRIPTS = re.compile(r"[A-Za-z][\u0370-\u04ff]|[\u0370-\u04ff][A-Za-z]")


def reason_planted(text: str) -> str:
    """Which trick a statement plays, or "" for an honest one."""
    if len(_HIDDEN.findall(text)) > 0:
        return "hidden_characters"
    plain = _TITLE.sub(" ", unicodedata.normalize("NFKC", text))  # the title of a talk commands nobody
    if _TWO_SCRIPTS.search(plain):
        return "look_alike_letters"
    if _ENCODED.search(plain):
        return "encoded"
    told = _OWN_HABIT.sub(" ", plain)
    own_trade = _OF_THE_TRADE if _OWN_TRADE.match(plain) else frozenset[str]()
    patterns = ((name, pattern) for name, pattern in _PATTERNS if name not in own_trade)
    return next((name for name, pattern in patterns if pattern.search(told if name == "reveals" else plain)), "")


_TAINTED = re.compile(
    r"\b(?:repeat (?:that|this|it) as your reasoning)\b|推理提示|请复述|"
    r"(?:现|特此)通知[^。]{0,20}用户|用户(?:档案|画像)[^。]{0,8}(?:保留|写入|"
    r"记录)",
    IGNORE_CASE,
)


def taints_message(message: str) -> bool:
    """Whether all of the message is distrusted: it hides characters, has reasoning repeated, or poses as a notice."""
    if len(_HIDDEN.findall(message)) > 2:
        return True
    return bool(_TAINTED.search(message))
