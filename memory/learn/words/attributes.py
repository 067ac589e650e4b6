"""Attributes of a user that a request and a memory may word differently, in four languages.

Each is a pair: how a request names it ("my address"), and how a memory tells it ("I live in …"). Beside them, phrases
near which earlier statements of an attribute are found. Only patterns and words.
"""

from __future__ import annotations

import re


def _pair(asked: str, said: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(asked, re.IGNORECASE), re.compile(f"{asked}|{said}", re.IGNORECASE)


def _same(words: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return _pair(words, words)


ATTRIBUTES: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    _pair(
        r"\b(?:e-?mail(?: address)?|mail ?adresse|correo(?: electrónico)?)\b|邮箱(?:地址)?|电子邮件",
        r"\b\S+@\S+\b",
    ),
    _pair(
        r"\b(?:(?:home |street |postal )?address|home ?town|place of residence|i liv(?:e|ed)|we liv(?:e|ed)|adresse|"
        r"wohnort|anschrift|(?:ich|wir) wohnen?|wohnen?|dirección|domicilio|vivo|vivimos)\b|地址|住址|住处|住在|家住",
        r"\b(?:live[sd]?|living|based|moved|reside|relocated|wohne|lebe|gezogen|vivo|mudé)\b|住|搬到|搬去",
    ),
    _pair(
        r"\b(?:birth ?days?|birth ?date|date of birth|geburtstag|geburtsdatum|cumpleaños|fecha de nacimiento)\b|"
        r"生日|出生日期",
        r"\b(?:born|geboren|nací)\b|出生|生于",
    ),
    _same(
        r"\b(?:(?:tele|cell ?|mobile )?phone(?: number)?|mobile number|telefonnummer|handynummer|telefon|"
        r"(?:número de )?teléfono|móvil)\b|电话(?:号码)?|手机号?码?"
    ),
    _pair(
        r"\b(?:jobs?|employer|career|profession|occupation|workplace|i work|arbeit|beruf|job|arbeitgeber|trabajo|"
        r"empleo|profesión)\b|工作|职业|上班",
        r"\b(?:work(?:s|ed|ing)?|employed|hired|arbeite|angestellt|trabajo|trabajando)\b|任职|入职|公司",
    ),
    _pair(
        r"\b(?:salary|wages?|income|gehalt|lohn|sueldo|salario)\b|工资|薪水|收入|月薪", r"\b(?:earn|verdiene|gano)\b"
    ),
    _pair(
        r"\b(?:my|our|mein|mi) age\b|\bhow old i am\b|\b(?:mein )?alter\b|\b(?:mi )?edad\b|年龄|岁数",
        r"\byears? old\b|\b\d+ jahre alt\b|\b\d+ años\b|\d+ ?岁|[一二三四五六七八九十]岁",
    ),
    _pair(
        r"\b(?:(?:first|last|full|real)? ?name|vorname|nachname|namen?|nombre|apellido)\b|名字|姓名",
        r"\b(?:called|call me|named|hei(?:ß|ss)e|heißt|llamo|llama)\b|叫|姓",
    ),
    _same(r"\b(?:allerg\w+|alergi\w+|alérgic\w+)\b|过敏"),
    _same(r"\b(?:diet|vegetarian|vegan|dieta|diät|ernährung)\b|素食|吃素|饮食"),
    _same(r"\b(?:cats?|kitten|katzen?|gat[oa]s?)\b|猫"),
    _same(r"\b(?:dogs?|puppy|hunde?|perr[oa]s?)\b|狗"),
    _same(r"\b(?:wife|ehefrau|meine frau|esposa|mujer)\b|老婆|妻子|太太"),
    _same(r"\b(?:husband|ehemann|mein mann|esposo|marido)\b|老公|丈夫"),
    _same(r"\b(?:girlfriend|freundin|novia)\b|女朋友|女友"),
    _same(r"\b(?:boyfriend|mein freund|novio)\b|男朋友|男友"),
    _same(r"\b(?:sisters?|schwester|hermana)\b|姐姐|妹妹|姐妹"),
    _same(r"\b(?:brothers?|bruder|hermano)\b|哥哥|弟弟|兄弟"),
    _same(r"\b(?:sons?|sohn|hijo)\b|儿子"),
    _same(r"\b(?:daughters?|tochter|hija)\b|女儿|闺女"),
    _same(r"\b(?:mother|mom|mum|mutter|madre)\b|妈妈|母亲|我妈"),
    _same(r"\b(?:father|dad|vater|padre)\b|爸爸|父亲|我爸"),
    _same(r"\b(?:boss|manager|chefin?|jef[ea])\b|老板|上司|领导"),
    _same(r"\b(?:cars?|auto|coche)\b|车"),
)


_SPOKEN_OF: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(
            r"\b(?:liv(?:e[sd]?|ing)|moved|moving|reside|relocat\w+|based|rent(?:ed|ing)|flat|apartment|house|home|address|"
            r"wohn\w*|lebe|(?:um)?gezogen|adresse|viv(?:o|imos)|mud\w+|dirección)\b|住|搬|租|地址",
            re.IGNORECASE,
        ),
        ("I live in", "I moved to", "Ich wohne in", "Vivo en", "我住在", "我搬到"),
    ),
    (
        re.compile(
            r"\b(?:work(?:s|ed|ing)?|jobs?|employ\w*|hired|career|company|quit|resigned|joined|started (?:at|as)|"
            r"arbeit\w*|angestellt|gekündigt|trabaj\w*|empleo)\b|\bi(?:['’]m| am) (?:now )?an?\b|"
            r"工作|上班|任职|入职|离职|辞职|公司|跳槽|我在.{1,12}[做当教]",
            re.IGNORECASE,
        ),
        ("I work at", "I work as a", "My job is", "Ich arbeite bei", "Trabajo en", "我在公司上班", "我的工作是"),
    ),
    (
        re.compile(
            r"\b(?:stud(?:y|ies|ying)|major(?:ing)?|degree|studier\w*|estudi\w*)\b|专业|学的|读的",
            re.IGNORECASE,
        ),
        ("I study", "My major is", "Ich studiere", "Estudio", "我的专业是"),
    ),
    (
        re.compile(
            r"\b(?:drives?|driving|car|van|fahren?|auto|wagen|conduzco|coche)\b|开车|车",
            re.IGNORECASE,
        ),
        ("I drive a", "My car is a", "Ich fahre einen", "Conduzco un", "我开车"),
    ),
    (
        re.compile(
            r"\b(?:commut\w+|to (?:work|the office)|pendle|zur arbeit|al trabajo)\b|上班|通勤",
            re.IGNORECASE,
        ),
        ("I commute by", "I cycle to work", "Ich fahre zur Arbeit mit", "Voy al trabajo en", "我上班坐"),
    ),
    (
        re.compile(
            r"\b(?:vegetari\w+|vegan\w*|pescatarian|omnivore|flexitarian|keto|meat|fleisch|carne)\b|吃素|素食|吃肉",
            re.IGNORECASE,
        ),
        ("I am vegetarian", "I am vegan", "I eat meat", "Ich esse kein Fleisch", "No como carne", "我吃素"),
    ),
    (
        re.compile(
            r"\b(?:manager|boss|supervisor|report(?:s|ing)? to|team lead|chefin?|vorgesetzte\w*|jef[ea])\b|"
            r"组长|经理|老板|领导|主管|上司",
            re.IGNORECASE,
        ),
        ("My manager is", "My boss is", "I report to", "Meine Chefin ist", "Mi jefe es", "我的领导是", "我们组长是"),
    ),
    (
        re.compile(
            r"\b(?:my name|call me|named|hei(?:ß|ss)e|me llamo|mi nombre)\b|我叫|叫我|名字",
            re.IGNORECASE,
        ),
        ("My name is", "Call me", "Ich heiße", "Me llamo", "我叫"),
    ),
    (
        re.compile(
            r"\b(?:birth ?day|born|geburtstag|geboren|cumpleaños|nací)\b|生日|出生",
            re.IGNORECASE,
        ),
        ("My birthday is on", "I was born on", "Mein Geburtstag ist am", "Mi cumpleaños es el", "我的生日是"),
    ),
    (
        re.compile(
            r"\b(?:salary|earn|gehalt|verdiene|sueldo|gano)\b|工资|月薪|收入",
            re.IGNORECASE,
        ),
        ("My salary is", "I earn", "Mein Gehalt ist", "Mi sueldo es", "我的工资是"),
    ),
    (
        re.compile(
            r"\b(?:e-?mail|phone|telefon|handy|correo|teléfono|móvil)\b|\S+@\S+|邮箱|电话|手机",
            re.IGNORECASE,
        ),
        ("My email is", "My phone number is", "Meine Telefonnummer ist", "Mi correo es", "我的电话是", "我的邮箱是"),
    ),
)


def phrases_of(text: str, *, most: int) -> list[str]:
    """How people tell the attributes that the text may be about, in all four languages; at most so many, in order.

    Wide on purpose: whoever looks near them finds candidates, and decides nothing by them.
    """
    found = [phrase for pattern, phrases in _SPOKEN_OF if pattern.search(text) for phrase in phrases]
    return list(dict.fromkeys(found))[:most]


__all__ = ["ATTRIBUTES", "phrases_of"]
