"""Signals: phrases that decide by themselves whether memory is needed, in English, Chinese, Spanish and German.

A command to a live tool ("set my alarm") needs none, even if it says "my". Any other mention of the user
("my", "我们") needs it. A word that is only mentioned (a quoted title, "I/O", "World War I") counts as neither. Where
no rule applies, the functions return False: this module does not guess.
"""

from __future__ import annotations

import re

CHARACTERS_MAX = 400  # of the beginning and of the end of an earlier message


class _Cue:
    """Phrases of languages with spaces, matched at word starts, and Chinese ones, matched anywhere."""

    def __init__(self, spaced: str, chinese: str) -> None:
        self._spaced = re.compile(rf"\b(?:{spaced})", re.IGNORECASE)
        self._chinese = re.compile(chinese, re.IGNORECASE)

    def is_in(self, text: str) -> bool:
        if self._spaced.search(text):
            return True
        return not text.isascii() and self._chinese.search(text) is not None

    def cut_from(self, text: str) -> str:
        text = self._spaced.sub(" ", text)
        return text if text.isascii() else self._chinese.sub(" ", text)


_QUOTED = re.compile(
    r"《[^》]{0,80}》|“[^”]{0,80}”|「[^」]{0,80}」|『[^』]{0,80}』|‘[^’]{0,80}’(?!\w)|«[^»]{0,80}»|„[^“”]{0,80}[“”]"
    r"|\"[^\"\n]{0,80}\"|(?<!\w)'[^'\n]{1,80}'(?!\w)|`[^`\n]{0,80}`"
)
# "I" as a numeral or a letter, pronouns that open a title inside a sentence, compounds that only contain 我.
_ONLY_MENTIONED = re.compile(
    r"\bI(?:/[A-Z]|-\w+|, (?=[A-Z]))|\bWe Chat\b"
    r"|\b(?:War|Type|Part|Chapter|Phase|Act|Stage|Class|Group|Article|Title|Volume|Elizabeth|Charles|James|Henry"
    r"|Napoleon|Wilhelm|Franz|Nicholas|Alexander|Francis|George|Edward|Richard|Philip|Peter|Otto|Ramesses|Darius"
    r"|Frederick|Louis|William|Mary|Pedro|Leopold|Constantine|Justinian|Xerxes|Felipe|Carlos|Isabel|Friedrich|Karl"
    r"|Heinrich) I\b(?!['’])"
    r"|(?<=[a-z,] )(?:My|Our|We|Me|Us|Mine|I)(?= (?!['’])[A-Z])"
    r"|(?i:\b(?:the word|pronouns?|determiners?|the pronoun|the prefix|the suffix) (?:my|mine|our|ours|me|us|we|i)\b)"
    r"|自我|我国|我军|我方|我党|我行我素|忘我|唯我独尊|你死我活|你追我赶"
)
_NEUTRAL = _Cue(
    # English, Spanish and German
    r"(?:how|why) (?:do|can|could|would|should|to|did) (?:i|we|you)\b"
    r"|(?:can|could|may) (?:i|we|you) (?:please )?(?:see|use|get|have a|ask|tell me)\b"
    r"|(?:what|why) do we (?:call|mean|know|have|use|say|need)\b|do we have\s*\??$"
    r"|(?:tell|give|show|let|explain to|teach|bring|find|read|help|get|make|send|ask|pick|play|sing|draw|wake"
    r"|call) (?:me|us)\b|let's (?!get back|continue|pick)"
    r"|(?:like|as if) i(?:'m| am| was| were) (?:an? )?(?:(?:total |complete )?(?:beginner|child|kid|toddler|novice)"
    r"|\d+|five|six|seven|eight|nine|ten|eleven|twelve)\b"
    r"|i (?:want|need|would like|'d like|wanna) (?:to (?:know|understand|learn|ask)|you to)\b"
    r"|i(?:'m| am) (?:curious|wondering|asking|five|5)\b|i (?:wonder|mean|guess|think)\b"
    r"|our (?:solar system|galaxy|planet|sun|moon|universe|species|ancestors|atmosphere|bod(?:y|ies)|brains?|eyes|ears"
    r"|milky way|era)\b|dime\b|dame\b",
    # Chinese
    r"(?:帮|给|替|教|告诉|让|为|请|叫|帮忙给|跟)我(?!妈|爸|家|姐|哥|弟|妹|儿|女|老|的|们|孩|奶|爷|外|媳|朋|同|先生"
    r"|太太|闺)(?:说|讲|看|查|算|找)?"
    r"|我(?:想|要|需要|很想)?(?:知道|问一?下|问问?|了解|查一?下|请教)|我好奇|我们(?:知道|常说|一般|通常)"
    r"|我们的?(?:地球|太阳系|宇宙|银河|星球|国家|祖先|大脑|身体|眼睛|人类)",
)

# --- live tools -------------------------------------------------------------------------------------------------------
_OWN_DEVICE = (
    r"(?:ip(?: address)?|battery|screen(?! size)(?: time)?|brightness|volume|(?:disk|hard drive|storage)(?: space)?"
    r"|cpu|ram|gpu|(?:current |gps )?location|clipboard|downloads?(?: folder)?|desktop|inbox|unread \w+|notifications?"
    r"|recycle bin|trash|browser|terminal|hostname|operating system|internet (?:speed|connection)|network"
    r"|wi-?fi(?! (?:password|code|key|name))|bluetooth|alarms?(?! code)|timers?)"
)
_SWITCHED = (
    r"(?:lights?|lamps?|tv|television|radio|speakers?|heating|heater|thermostat|air ?con(?:ditioning)?|ac|fan|oven"
    r"|blinds?|curtains?|shutters?|wi-?fi|bluetooth|airplane mode|dark mode|music|vacuum|camera|alarms?|timers?"
    r"|stopwatch|garage(?: door)?|sprinklers?|screen|monitor|computer|laptop|phone|volume|brightness|flashlight|torch"
    r"|printer|kettle|dishwasher|washing machine)"
)
_COMMAND = re.compile(
    rf"^(?:(?:please|can you|could you|now|hey|would you) )*(?:"
    rf"(?:turn|switch|power|put) (?:on|off|up|down) .*{_SWITCHED}|(?:turn|switch|dim|mute|unmute|lower|raise|start"
    rf"|stop|restart|reboot|open|close|lock|unlock"
    rf"|set|connect|disconnect|enable|disable|activate|ring|check|show|locate|find|clear|empty|adjust) (?:me )?(?:the "
    rf"|my |all |all the |our )?(?:\w+ ){{0,2}}(?:{_SWITCHED}|{_OWN_DEVICE})\b"
    r"|(?:turn|switch) .* (?:on|off|up|down)$"
    r"|(?:set|start|cancel|stop|pause|delete|snooze|create) (?:a|an|the|my|all|another) (?:\S+ ){0,3}(?:timer|alarm"
    r"|stopwatch|countdown|reminder)s?\b"
    r"|(?:create|make|add) (?:a|an|the) (?:new )?(?:empty )?(?:file|folder|directory|branch)\b|add .{1,60} to (?:the"
    r"|my|our) (?:shopping|grocery|to-?do) list|(?:pick|generate|give me|choose|create|make) (?:me )?an? (?:random"
    r"|uuid|strong password|secure password|guid)\b|(?:wake me(?: up)?|remind me) (?:at|in|by|to|tomorrow|on)\b|snooze"
    r"|(?:pause|resume|skip|stop|next|previous|rewind|shuffle|repeat)"
    r"(?: (?:the|this|that))?(?: (?:music|song|track|video|playback|podcast|playlist|movie))?$|volume (?:up|down)|mute"
    r"|unmute|(?:roll|throw) (?:a|an|the|two|three|\d+)?\s*(?:\w+-sided )?(?:dice|die|d\d+)|flip a coin|toss a coin"
    r"|take a (?:screenshot|photo|picture|selfie)"
    r"|(?:search|browse|google|look up on) (?:the |on the )?(?:web|internet|online|google|bing)|google |search online"
    r"|(?:ping|curl|wget|traceroute|grep|sudo|ssh|chmod|mkdir|kubectl) \S+|git (?:status|log|diff|pull|push|fetch"
    r"|blame|checkout|add|commit)|ls(?: -\w+)?$"
    r"|(?:run|execute) (?:the |this |that |these |all )?(?:the )?(?:tests?|test suite|script|command|query|code"
    r"|program|build|linter|`|\w+\.\w+)"
    r"|(?:read|open|show|print|cat|list|delete|remove|rename|move|copy|download|upload|compress|unzip|tail|count"
    r"|display)\b.*"
    r"(?:\b[\w-]+\.(?:py|c|h|js|ts|md|txt|csv|json|ya?ml|toml|log|pdf|rs|go|java|html|cfg|ini|sh|xml|docx?|xlsx?)\b"
    r"|\b(?:files?|folders?|director(?:y|ies))\b|\S+/\S+))",
    re.IGNORECASE,
)
_LIVE = _Cue(
    # English
    rf"my (?:\w+ )?{_OWN_DEVICE}\b"
    r"|what(?:'s| is) (?:the )?(?:current )?(?:time|date)(?: (?:in|is it|now|right now|today"
    r"|at the moment)\b.*)?\s*\??$"
    r"|what(?:'s| is) (?:today|tomorrow|yesterday)'?s? date\b|what (?:time|day|date|year|month) is it\b"
    r"|current (?:time|date|temperature|weather)\b"
    r"|how many (?:days|weeks|hours|months) (?:until|till|to|before) (?:christmas|new year|easter|halloween"
    r"|thanksgiving|midnight|summer|winter|the end of the year)\b"
    r"|what day of the week is\b|the next (?:bus|train|tram|subway|ferry) (?:to|from|leave|depart)"
    r"|(?:commit|push) (?:these|the|my|all) changes\b"
    r"|how much (?:battery|disk space|storage|free space|memory|ram)\b.*\b(?:left|free|used?|have|available|using)\b"
    r"|where am i(?: right now)?\s*\??$|(?:stock|share|bitcoin|btc|eth|ethereum|gold|silver|oil) price\b"
    r"|price of (?:bitcoin|gold|oil|silver|ethereum)\b|exchange rate\b"
    r"|(?:latest|breaking|today'?s) (?:news|headlines)\b|(?:convert|how (?:many|much) (?:is|are)) [\d.,]+"
    r"|(?:is|are|has|have|when (?:does|will|is)) (?:the )?(?:flight|train|bus|ferry) [A-Z]{0,3}\s?\d+"
    # Spanish
    r"|mi (?:direcci[oó]n ip|bater[ií]a|ubicaci[oó]n|pantalla|conexi[oó]n)\b|bater[ií]a me queda\b"
    r"|qu[eé] hora es\b|qu[eé] d[ií]a es hoy\b"
    r"|(?:pon|ponme|programa|cancela|quita) (?:una|un|la|el|mi) (?:alarma|temporizador|despertador|cron[oó]metro)"
    r"|^(?:por favor,? )?(?:apaga|enciende|sube|baja|prende|abre|cierra|pausa) (?:el|la|las|los|mi) \w+"
    r"|lanza (?:una moneda|un dado)\b|busca en (?:internet|google|la web)\b"
    # German
    r"|meine? (?:ip(?:-adresse)?|akku|standort|bildschirm|wlan)\b|akku habe ich\b|wie (?:spät ist es|viel uhr)\b"
    r"|welche[rns]? (?:tag|datum|wochentag) (?:ist|haben wir) (?:heute|morgen)\b"
    r"|(?:stell|stelle|mach|lösch|lösche)e? (?:mir )?(?:einen|den|meinen) (?:\S+ )?(?:wecker|timer)"
    r"|^(?:bitte )?(?:mach|schalte?|dreh[e]?) (?:das|den|die|bitte) .*\b(?:an|aus|ein|lauter|leiser|hoch|runter"
    r"|herunter)\b|wirf (?:eine münze|einen würfel)\b|(?:such|suche) im (?:internet|netz|web)\b",
    # Chinese
    r"我的?(?:手机|电脑|笔记本|平板|设备)?(?:还有|还剩|剩)?(?:多少)?(?:电量|IP|ip|网速|未读|闹钟|剪贴板|磁盘|硬盘空间"
    r"|当前位置)|我的?(?:手机|电脑|笔记本|平板)的?(?:内存|存储|空间|磁盘|系统版本|CPU|电池)|手机还(?:有|剩)多少电"
    r"|我(?:现在|这会儿)?在(?:哪里?|什么位置)(?:[？?]|$)"
    r"|^(?:请|麻烦|帮我|帮忙|给我|你|把|能不能|可以|小\S同学)*(?:打开|关掉|关闭|关上|开启|调高|调低|调到|调大|调小"
    r"|启动|停止|暂停|播放|取消|拉上|拉开|锁上).{0,8}(?:灯|空调|电视|窗帘|音乐|音量|闹钟|计时|蓝牙|[Ww]i-?[Ff]i"
    r"|飞行模式|风扇|扫地机|门锁|大门|暖气|加湿器|热水器|热点|手电筒|屏幕|亮度|歌|视频|播放|浏览器|摄像头|相机)"
    r"|(?:把).{0,8}(?:灯|空调|电视|窗帘|音量|亮度|温度|声音|暖气|风扇).{0,3}(?:调|开|关|拉)"
    r"|(?:倒计时|计时)[\d一二三四五六七八九十两半]+|(?:定|设|订)个?.{0,8}(?:闹钟|计时器|提醒|倒计时)"
    r"|[\d一二三四五六七八九十两半]+(?:个)?(?:分钟|小时)[以之]?后(?:提醒|叫)我"
    r"|(?:明天|明早|今晚)?.{0,4}点(?:钟|半)?(?:叫|喊)我(?:起床)?|(?:现在|这会儿|此刻|当地).{0,6}几点"
    r"|^(?:请|帮我|给我)?(?:截(?:个|一?张)?屏|截图|拍(?:一?张|个)照|扫(?:一下|描)?.{0,6}码|(?:新建"
    r"|创建)(?:一?个)?.{0,6}(?:文件夹?|目录|分支)|返回(?:上一页|首页|主页)|(?:重启|关闭)(?:电脑|手机|服务器|路由器"
    r"|服务|系统)|打印|随机(?:生成|选|给|来|抽|数)|生成(?:一?个)?随机)"
    r"|\d+.?\d*(?:美元|人民币|欧元|日元|英镑|公里|英里|斤|磅|摄氏度|华氏度|英寸).{0,6}(?:等于|是|换|合|折).{0,3}多少"
    r"|(?:等于|换算?成?|兑).{0,4}多少(?:美元|人民币|欧元|日元|英镑|公里|米|斤|克|磅)"
    r"|^今天(?:是)?(?:几[号月]|星期几|周几|什么日子|农历)|(?:扔|抛|掷)(?:一?个)?(?:硬币|骰子)"
    r"|(?:最新|今日|今天的?|现在的?)(?:新闻|头条|汇率|股价|金价|油价|热搜)"
    r"|(?:上网|网上|浏览器|联网|百度|谷歌).{0,4}(?:搜|查|找)|搜索(?:一下)?(?:最新|网)"
    r"|(?:读取|读一下|打开|删除|重命名|列出|查看|显示).{0,12}(?:\.\w{1,5}\b|目录|文件夹|文件)"
    r"|(?:运行|执行|跑)(?:一下)?.{0,6}(?:测试|脚本|命令|代码|npm|pip|git)",
)
# --- the user ---------------------------------------------------------------------------------------------------------
_USER = _Cue(
    # English, Spanish and German
    r"(?:my|mine|our|ours|we|we're|we've|we'd|i|i'm|i've|i'd|i'll|myself|ourselves)\b"
    r"|(?:for|about|with|to|suits?|like|from|than|told|know|knows|owes?|and) me\b"
    r"|(?:for|about|with|to|of|from|both|all) (?-i:us)\b"
    r"|(?<!\d )\b(?:mi|mis|nuestr[oa]s?|m[ií][oa]s?|nosotr[oa]s|conmigo|me (?:gust\w+|toca|duele|encant\w+|llamo"
    r"|recet\w+|qued\w+|dij\w+|recomend\w+|falta\w*|debe\w*)|tengo|tenemos|soy(?! (?:sauce|milk|beans?|protein))|estoy"
    r"|debo|puedo|hemos|vamos|compramos|pagamos|tenía|dejé)\b"
    r"|(?:mein(?! kampf)|meine[mnrs]?|unser|unsere[mnrs]?|wir|ich|(?-i:mir)|mich|uns)\b",
    # Chinese
    r"我|咱|俺|本人",
)


def shortened(text: str) -> str:
    """The beginning and the end of a long message."""
    return text if len(text) <= CHARACTERS_MAX else f"{text[: CHARACTERS_MAX // 2]}\n{text[-CHARACTERS_MAX // 2 :]}"


def without_quotes(text: str) -> str:
    """`text` with every quoted word or title, which is only mentioned, replaced by an empty pair of quotes."""
    return _QUOTED.sub(' "" ', text)


def without_mentions(text: str) -> str:
    """`text` without quoted parts, and without words that only look like pronouns."""
    return _ONLY_MENTIONED.sub(" ", _QUOTED.sub(" ", text))


def refers_to_user(text: str) -> bool:
    """Apart from the "me" and "I" of a request. `text`: from `without_mentions`, here and below."""
    return _USER.is_in(_NEUTRAL.cut_from(text))


def is_tool_command(text: str) -> bool:
    """Whether it is a command for a live tool: device, clock, files, the web."""
    stripped = text.strip().rstrip(".!。！")
    return _COMMAND.match(stripped) is not None or _LIVE.is_in(stripped)
