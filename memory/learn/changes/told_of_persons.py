"""What a clause tells of the user and of those close to them: home, employer, occupation, marital status, who their
partner or their boss is, how they are reached, and how old somebody is.

Only what a person has one of at a time. A club is no employer, a town no company, "my ex-wife" no wife. Patterns, each
linear in its text; English and Chinese, German and Spanish for the commonest. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.learn.changes.told import AGE, AGE_OF, GRADE_OF, OCCUPATION, SCHOOL_OF, Told
from memory.learn.words.lexicon import CITIES_ZH, MONTH_NAMES, NATIONALITY, RELATIONS, RELATIONS_ZH, WEEKDAYS
from memory.learn.words.persons import relations_of
from memory.learn.words.terms import terms
from memory.learn.words.values import as_number, named_in

IGNORE_CASE = re.IGNORECASE

_NAME = r"(?-i:[A-ZÀ-Þ][\w&'’-]*(?:(?: of)? [A-ZÀ-Þ][\w&'’-]*)*)"
_ADVERB = r"(?:now|currently|still|actually|already|just|jetzt|inzwischen|ahora|ya)"
_DWELLING = r"(?:my|our|an?|the)(?: new| own)? (?:[a-z]+ )?(?:flat|house|place|apartment|home)"
_HOMES = (
    re.compile(
        rf"\b(?:i|we)(?:['’](?:m|re|ve))?(?: have| am| are)?(?: {_ADVERB})? (?:live|living|reside|based|settled)"
        rf"(?: {_ADVERB})?(?: with(?: [a-z]+){{1,3}}?)?(?: in(?:to)? {_DWELLING})? in (?P<town>{_NAME})",
        IGNORE_CASE,
    ),
    re.compile(
        rf"^(?:settled|living|moved) (?:in|into|to) (?:{_DWELLING} in )?(?P<town>{_NAME})",
        IGNORE_CASE,
    ),
    re.compile(rf"\b(?:wohn|leb)en? (?:ich |wir )?(?:{_ADVERB} )?in (?P<town>{_NAME})", IGNORE_CASE),
    re.compile(rf"\b(?:ich|wir) (?:{_ADVERB} )?(?:wohne|lebe)n? (?:{_ADVERB} )?in (?P<town>{_NAME})", IGNORE_CASE),
    re.compile(rf"\b(?:vivo|vivimos) (?:{_ADVERB} )?en (?P<town>{_NAME})", IGNORE_CASE),
    re.compile(
        rf"(?:^|[，,。])(?:我们?|咱们?)(?:现在|目前|一家|家)*(?:(?:住|搬|定居|安家)[在到了]*|(?<=家)在)(?P<town>{CITIES_ZH.pattern})"
    ),
)
_JOBS = (
    re.compile(
        rf"\bi(?:['’]m| am|['’]ve been| have been)?(?: {_ADVERB})? (?:work|working|employed)"
        rf"(?: {_ADVERB})?(?: as (?:an? |the )?(?P<role>[a-z][\w -]{{1,40}}?))?(?: (?:at|"
        rf"for) (?:the )?(?P<employer>{_NAME}))?"
        r"(?=\s*[,.;!?)]|$| (?:in|on|since|and|but|as|these|now|where|near|from|until)\b)(?! (?:in|on) "
        r"(?:mon|tues|wednes|thurs|fri|satur|sun|week))",
        IGNORE_CASE,
    ),
    re.compile(
        rf"\b(?:i|i['’]ve|i have)(?: just| recently| finally)? (?:start|started|begin|began|got|landed|took)"
        rf"(?: (?:a|the|my|an?)(?: \w+)? (?:job|position|role))?(?: working)?(?: as (?:an? |"
        rf"the )?(?P<role>[a-z][\w -]{{1,40}}?))?"
        rf" (?:at|with|for) (?:the )?(?P<employer>{_NAME})",
        IGNORE_CASE,
    ),
    re.compile(
        rf"\b(?:i|i['’]ve|i have)(?: just| recently)? joined (?:the )?(?P<employer>{_NAME}) as (?:an? |the )?"
        r"(?P<role>[a-z][\w-]*)",
        IGNORE_CASE,
    ),
    re.compile(
        rf"\b(?:my )?(?:new job|first (?:day|week|month))(?: as (?:an? |the )?(?P<role>[a-z][\w -]{{1,40}}?))?"
        rf" (?:is )?(?:at|with) (?:the )?(?P<employer>{_NAME})",
        IGNORE_CASE,
    ),
    re.compile(
        rf"\bi(?: {_ADVERB})? (?:teach|lecture|practi[sc]e)(?: [a-z]+){{0,3}} at (?:the )?(?P<employer>{_NAME})",
        IGNORE_CASE,
    ),
    re.compile(
        rf"\bi(?:['’]m| am)(?: {_ADVERB})? (?:an?|the) (?P<role>[a-z][\w-]*(?: [a-z][\w-]*){{0,3}}) "
        rf"(?:at|for|with) (?:the |a )?(?P<employer>{_NAME})",
        IGNORE_CASE,
    ),
    re.compile(
        rf"\bich arbeite (?:{_ADVERB} )?(?:als (?P<role>[\w-]+) )?bei (?:der |dem )?(?P<employer>{_NAME})|"
        rf"\bich habe .{{0,20}}\bbei (?:der |dem )?(?P<employer_2>{_NAME}) (?:als (?P<role_2>[\w-]+) )?angefangen",
        IGNORE_CASE,
    ),
    re.compile(
        rf"\btrabajo (?:{_ADVERB} )?(?:de (?P<role>[\w-]+) )?(?:en|para) (?P<employer>{_NAME})|"
        rf"\bempec[ée] (?:a trabajar )?en (?P<employer_2>{_NAME})",
        IGNORE_CASE,
    ),
    re.compile(
        r"(?:我(?:现在|目前|如今|这几年)?|^(?:现在|目前|如今))在(?:一[家个所])?(?P<employer>[^，,。；家]{1,12}?)(?:上班|工作|任职|教(?!书的)|(?:做|"
        r"当)(?P<role>[^，,。；]{1,8}))"
    ),
    re.compile(
        r"我[^，,。；不没想]{0,6}?(?:入职|跳槽到|跳到|加入)了?(?P<employer>[^，,。；了]{1,12}?)"
        r"(?=(?:当|做)(?P<role>[^，,。；了]{1,8})|了|[，,。；]|$)"
    ),
)
_NO_ROLE = re.compile(
    r"\b(?:member|fan|volunteer|regular|customer|patient|guest|student|client|subscriber|speaker|believer|beginner|"
    r"bit|shareholder|trustee|parent|user|case|person|tenant|resident|trainee|intern)$",
    IGNORE_CASE,
)
_NO_EMPLOYER_ZH = re.compile(
    rf"(?:{CITIES_ZH.pattern}|路上|外面|国外|国内|外地|线上|学校里|办公室|图书馆|咖啡[馆店厅]|这里|这边|那边|北方|南方)$|"
    "(?:[部组楼层]|部门|团队|附近|旁边|前|后|时候?)$"
)
_SPOUSES = "wife|husband|spouse|ehefrau|ehemann|esposa|esposo|marido"
_MATES = "girlfriend|boyfriend|partner|freundin|novia|novio"
_PARTNER = re.compile(
    rf"\b(?:my|mein|meine|mi) (?:new |neue[rs]? |nuev[oa] )?(?:(?P<spouse>{_SPOUSES})|(?P<mate>{_MATES}))"
    rf"(?:['’]s name is| is called| is named| heißt| se llama|,)? (?P<name>(?-i:[A-ZÀ-Þ])\w+)|"
    rf"\bi(?:['’]m| am) (?:now )?(?P<mates>seeing|dating|going out with) (?P<name_2>(?-i:[A-ZÀ-Þ])\w+)",
    IGNORE_CASE,
)
_PARTNER_ZH = re.compile(
    "(?:(?P<spouse>老婆|老公|妻子|丈夫|太太|爱人)|(?P<mate>女朋友|男朋友|女友|男友|对象))(?:的名字)?"
    "(?:(?:叫|名叫|是)(?P<name>[\u3400-\u9fff]{1,3}|[A-Z][a-z]+)(?=[，,。；]|$)|(?:叫|是)?"
    "(?P<name_2>(?:阿|小(?![时学孩心气说声区组])|老(?![师板家公婆]))[\u3400-\u9fff]))"
)
_BOSS = re.compile(
    r"\b(?:(?:my|our|mein\w*|unser\w*|mi|nuestr[oa]) (?:new |neue[rs]? |nuev[oa] )?|(?P<new>new ))(?:(?:line )?"
    r"(?P<boss>manager|boss|supervisor|chef(?:in)?|jef[ea])|(?P<role>landlord|landlady|gp|dentist|vermieter(?:in)?|"
    r"hausarzt|hausärztin|zahnarzt|zahnärztin|dentista))(?:['’]s name)? "
    r"(?:(?:is|ist|es|heißt|se llama|is called)(?: now| jetzt| ahora)?|(?(new)[^,:]{0,25}?:|:)) "
    r"(?:(?:mr|mrs|ms|frau|herr|señora?|dra?)\b\.? ?)*(?P<name>(?-i:[A-ZÀ-Þ])\w+)",
    IGNORE_CASE,
)
_ROLE_ZH = re.compile(
    "(?P<owner>(?:我们?的?)?)(?P<role>主治医生|家庭医生|牙医|健身教练|私教|教练|房东|班主任|导师|老板|领导|经理|主管|组长)(?:现在)?"
    "(?:是|叫|换成|变成)(?P<name>[^，,。；的很不在没太个最有]{1,5}?)了?(?=[，,。；]|$)"
)
_ROLE_STEMS = {"landlady": "landlord", "hausärztin": "hausarzt", "zahnärztin": "zahnarzt", "vermieterin": "vermieter"}
_STATUSES = {
    "single": re.compile(
        r"\bi(?:['’]m| am) (?:(?:still|currently|happily|now) )?(?:single|unmarried|not married)\b|"
        r"\bich bin (?:noch )?(?:single|ledig)\b|\b(?:estoy|soy) solter[oa]\b|我.{0,4}(?:单身|未婚|没结婚)",
        IGNORE_CASE,
    ),
    "engaged": re.compile(
        r"\b(?:i|we)(?:['’](?:m|re)| am| are)? (?:now )?(?:just |finally )?(?:got )?engaged\b|\bich bin verlobt\b|"
        r"\bestoy prometid[oa]\b|我们?[^，。；没不未]{0,8}订婚了",
        IGNORE_CASE,
    ),
    "married": re.compile(
        r"\b(?:i|we|\w+ and i)(?:['’]ve| have)? (?:just |finally )?(?:got|gotten) married\b|"
        r"\b(?:i(?:['’]m| am)|we(?:['’]re| are)) (?:now )?married\b|\bi married\b|"
        r"\b(?:ich habe|wir haben) .{0,30}geheiratet\b|\bme casé\b|\bnos casamos\b|"
        r"我们?[^，。；没不未]{0,8}(?:结婚了|领证了)",
        IGNORE_CASE,
    ),
    "divorced": re.compile(
        r"\b(?:i|we)(?:['’](?:ve|m|re)| have| am| are)? (?:just |finally |now )?(?:got |gotten )?divorced\b|"
        r"\b(?:ich bin|wir sind) (?:jetzt )?geschieden\b|\b(?:me divorcié|estoy divorciad[oa])\b|"
        r"我们?[^，。；没不未]{0,8}离婚了",
        IGNORE_CASE,
    ),
}  # fmt: skip
_OWN_AGE = re.compile(
    r"\bi(?:['’]m| am)\s+(?:(?:now|already|just|only)\s+)?(?P<age>\d{1,3})"
    r"(?:\s+years?\s+old|\s+now|\s+already|\s*[.!]?$)|"
    r"\bi(?:['’]ve)?\s+(?:just\s+)?turn(?:ed)?\s+(?P<turned>\d{1,3})\b(?!\s*(?:degrees|pages))|"
    r"\bich bin (?:jetzt )?(?P<age_de>\d{1,3})(?: jahre| jetzt|\s*[.!]?$)|\btengo (?:ya )?(?P<age_es>\d{1,3}) años|"
    "(?:^|[，,。])我?(?:今年|现在|已经|刚满|满)*(?P<age_zh>\\d{1,3}|[一二三四五六七八九十]{1,3}) ?岁",
    IGNORE_CASE,
)
_OWN_MEASURE = re.compile(
    r"(?<!when )(?<!if )(?<!until )(?<!once )(?<!before )(?:\b(?:i (?:now |currently |only |still )?weigh|"
    r"my weight is|i[’']m)|\bich wiege|(?<!el )\bpeso) (?:now |about |around |jetzt |ahora )?"
    r"(?P<value>\d{2,3}(?:[.,]\d)?) ?(?P<unit>kg|kilos?|pounds|lbs|cm)\b(?! of)|"
    "(?:^|[，,。])我(?:现在|今天|体重)*(?:有|是|重)?(?P<value_zh>\\d{2,3}(?:\\.\\d)?)(?P<unit_zh>公斤|斤)(?=[，,。了]|$)",
    IGNORE_CASE,
)
_BEHIND_AGE = (
    r"(?=\s*(?:years? old|jahre(?: alt)?|años|geworden)|\s*[,;!?)]|\.(?!\d)|\s*$|"
    r"\s+(?:now|already|as of|today|yesterday|last|this|next|on|in|and|but|so|jetzt)\b)"
    r"(?! (?:in|on) (?:the|my|her|his|line)\b)"
)
_AGES = (
    re.compile(
        rf"(?P<who>[\w'’ -]{{2,50}}?)(?:['’]s| is| are|(?: has)?(?: just)? turn(?:ed|s))"
        rf"(?: (?:just|now|already|only|turning|about to be))* (?P<age>\d{{1,2}}){_BEHIND_AGE}",
        IGNORE_CASE,
    ),
    re.compile(
        rf"(?P<who>(?:mein|unser)\w* [\w ]{{2,40}}?) (?:ist|wurde|"
        rf"wird) (?:[\wäöü]+ ){{0,3}}?(?P<age>\d{{1,2}}){_BEHIND_AGE}",
        IGNORE_CASE,
    ),
    re.compile(
        rf"(?P<who>(?:mi|nuestr[oa]) [\w ]{{2,40}}?) (?:ya )?(?:tiene|cumplió|cumple|"
        rf"ha cumplido)(?: ya)? (?P<age>\d{{1,2}})"
        rf"{_BEHIND_AGE}",
        IGNORE_CASE,
    ),
    re.compile(
        rf"(?P<who>(?:大|小|老大|老二|二)?(?:{RELATIONS_ZH.pattern})[^，,。；\d一二三四五六七八九十]{{0,3}}?)"
        r"(?:今年|现在|已经|刚刚?|过完?了?|马上|快|就|都|满|是|了|才)*(?P<age>\d{1,2}|[一二三四五六七八九十]{1,3}) ?岁"
        r"(?!时|的时|那年|开始|起|以?前|以?后|之)"
    ),
)
_GRADE = re.compile(
    rf"(?P<who>(?:(?:my|our) )?(?:{RELATIONS.pattern}|(?-i:[A-ZÀ-Þ])\w+)(?: (?-i:[A-ZÀ-Þ])\w+)?)(?:['’]s| is| goes|"
    rf" will be)?"
    r"(?: now| already| starting)?(?: in(?:to)?)? (?:year|grade|form) (?P<grade>\d{1,2})\b|"
    r"(?P<who_de>(?:mein|unser)\w* \w+(?: (?-i:[A-ZÀ-Þ])\w+)?) (?:ist|geht|kommt) (?:jetzt )?in (?:die|der) "
    r"(?P<grade_de>\d{1,2})\. klasse|"
    rf"(?P<who_zh>{RELATIONS_ZH.pattern})[^，,。；]{{0,8}}?(?P<grade_zh>[一二三四五六七八九])年级",
    IGNORE_CASE,
)
_SCHOOL = re.compile(
    rf"(?P<who>(?:(?:my|our) )?(?:{RELATIONS.pattern}|(?-i:[A-ZÀ-Þ])\w+)(?: (?-i:[A-ZÀ-Þ])\w+)?) (?:is|goes|starts|"
    rf"started|"
    r"attends|will start|is in year \d{1,2}) (?:now )?(?:at|to )? ?(?P<school>(?-i:(?:[A-ZÀ-Þ][\w'’]+ )+"
    r"(?:School|College|Primary|Academy|University|Nursery)))\b",
    IGNORE_CASE,
)
_SCHOOLS = terms("School College Primary Academy University Nursery")
_STUDIES = re.compile(
    rf"\bi(?:['’]m| am)?(?: {_ADVERB})? (?:study|studying) (?P<matter>[a-z ]{{3,30}}?) (?:at|in) (?:the )?{_NAME}|"
    rf"\bich studiere (?P<matter_de>\w+) (?:in|an der) {_NAME}|"
    rf"\bestudio (?P<matter_es>[\w ]{{3,30}}?) en (?:la )?{_NAME}|"
    r"我在[^，,。；]{2,10}(?:大学|学院)[学读](?P<matter_zh>[^，,。；了]{2,8})",
    IGNORE_CASE,
)
_UNITS = {"kilo": "kg", "kilos": "kg", "公斤": "kg", "lbs": "pounds"}
_KIND = r"(?P<kind>[\w'’]+[ -])??"
_MAIL = r"(?P<value>[\w.+-]+@[\w.-]+\w)"
_NUMBER = r"(?P<value>\+?\d[\d ()/-]{5,}\d)"
_PHONES = r"(?:(?:mobile|cell|phone|handy|móvil|teléfono)(?:[ -]?(?:phone|number|nummer))*|(?<=my )number)"
_MAIL_OWNED = re.compile(rf"\b(?:my|mein\w*|mi) {_KIND}(?:e-?mail|mail|correo)\b.{{0,25}}?{_MAIL}", IGNORE_CASE)
_MAIL_ZH = re.compile(
    rf"(?P<kind>公司|工作|私人|学校|备用)?的?(?:邮箱|电子邮件|邮件)[^，,。；]{{0,8}}?{_MAIL}", re.ASCII
)
_PHONE_OWNED = re.compile(
    rf"\b(?:my|mein\w*|mi) {_KIND}{_PHONES} ?(?:is|ist|es|:|=)? ?(?:now |jetzt |ahora )?{_NUMBER}", IGNORE_CASE
)
_PHONE_ZH = re.compile(rf"(?P<kind>公司|工作|家里)?的?(?:手机号?码?|电话号?码?)[是为:：]? ?{_NUMBER}")
_CONTACTS = (("mail", _MAIL_OWNED), ("mail", _MAIL_ZH), ("phone", _PHONE_OWNED), ("phone", _PHONE_ZH))
_NO_KIND = frozenset(("", "new", "private", "personal", "own", "neue", "privat", "私人", "current"))


def told_of_persons(clause: str) -> Iterator[Told]:
    """Each value that `clause` tells of a person's attribute."""
    yield from _home(clause)
    yield from _job(clause)
    yield from _partner(clause)
    yield from _boss(clause)
    yield from (Told("marital status", frozenset((s,))) for s, told in _STATUSES.items() if told.search(clause))
    own_age = _OWN_AGE.search(clause)
    if own_age:
        yield Told(AGE, frozenset((as_number(next(age for age in own_age.groups() if age)),)))
    yield from _measures(clause)
    yield from _ages(clause)
    yield from _learning(clause)
    yield from _contacts(clause)


def _measures(clause: str) -> Iterator[Told]:
    """ "I weigh 82 kg", "I'm 181 cm": in units that no two of which are converted."""
    match = _OWN_MEASURE.search(clause)
    if match:
        unit = (match["unit"] or match["unit_zh"]).casefold()
        value = match["value"] or match["value_zh"]
        yield Told(f"own {_UNITS.get(unit, unit)}", frozenset((value.replace(",", "."),)))


def _home(clause: str) -> Iterator[Told]:
    town = next((match["town"] for home in _HOMES if (match := home.search(clause))), "")
    if town and not (MONTH_NAMES.match(town) or WEEKDAYS.match(town)):
        yield Told("home", terms(town))


def _job(clause: str) -> Iterator[Told]:
    for pattern in _JOBS:
        match = pattern.search(clause)
        if match is None or _is_somebodys(clause, match):
            continue
        found = match.groupdict()
        employer = (found.get("employer") or found.get("employer_2") or "").strip()
        role = (found.get("role") or found.get("role_2") or "").strip()
        if role and _NO_ROLE.search(role):
            continue
        if employer and not _NO_EMPLOYER_ZH.search(employer) and terms(employer):
            yield Told("employer", terms(employer))
        if role and terms(role):
            yield Told(OCCUPATION, terms(role))


def _is_somebodys(clause: str, match: re.Match[str]) -> bool:
    """ "My wife started a new job at …": whoever is named before it does it."""
    begins = min((at for name in match.groupdict() if (at := match.start(name)) >= 0), default=match.end())
    return bool(relations_of(clause[:begins]))


def _partner(clause: str) -> Iterator[Told]:
    match = _PARTNER.search(clause) or _PARTNER_ZH.search(clause)
    if match is None:
        return
    name = match["name"] or match["name_2"]
    if not NATIONALITY.match(name):
        yield Told("spouse" if match["spouse"] else "mate", frozenset((name.casefold(),)))


def _boss(clause: str) -> Iterator[Told]:
    zh = _ROLE_ZH.search(clause)
    if zh:
        yield Told("who", frozenset((zh["name"],)), terms(zh["role"]), is_owned=bool(zh["owner"]))
    match = _BOSS.search(clause)
    if match is None or NATIONALITY.match(match["name"]):
        return
    role = "boss" if match["boss"] else match["role"].casefold()
    yield Told(_ROLE_STEMS.get(role, role), frozenset((match["name"].casefold(),)))


def _ages(clause: str) -> Iterator[Told]:
    for pattern in _AGES:
        match = pattern.match(clause) or pattern.search(clause)
        if match is None:
            continue
        who = match["who"]
        of = relations_of(who)
        names = named_in(who)
        is_of_user = re.search(r"\bi(?:['’]m)?\b", who, IGNORE_CASE)
        is_told = of or (names and pattern is _AGES[0])
        if is_told and not is_of_user and not re.search(r"[’']s \w", who):
            yield Told(AGE_OF, frozenset((as_number(match["age"]),)), of, names)
            return


def _learning(clause: str) -> Iterator[Told]:
    grade, school, studies = _GRADE.search(clause), _SCHOOL.search(clause), _STUDIES.search(clause)
    if grade:
        who = grade["who"] or grade["who_de"] or grade["who_zh"]
        number = as_number(grade["grade"] or grade["grade_de"] or grade["grade_zh"])
        yield Told(GRADE_OF, frozenset((number,)), relations_of(who), named_in(who))
    if school:
        yield Told(SCHOOL_OF, terms(school["school"]) - _SCHOOLS, relations_of(school["who"]), named_in(school["who"]))
    if studies:
        yield Told("study", terms(" ".join(matter for matter in studies.groups() if matter)))


def _contacts(clause: str) -> Iterator[Told]:
    for attribute, pattern in _CONTACTS:
        match = pattern.search(clause)
        if match:
            kind = (match["kind"] or "").strip(" -").casefold()
            value = re.sub(r"[ ()/-]", "", match["value"]) if attribute == "phone" else match["value"].casefold()
            yield Told(attribute, frozenset((value,)), frozenset() if kind in _NO_KIND else frozenset((kind,)))


__all__ = ["told_of_persons"]
