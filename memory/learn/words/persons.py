"""By which words a Chinese sentence tells of another person than the user. Only patterns, no decisions. Pure."""

from __future__ import annotations

import re

from memory.learn.words.lexicon import RELATIONS_ZH

# Whoever may stand behind 我 or 我的, also those who are not close; 教师证 and 教师节 are no persons.
PERSONS_ZH = re.compile(
    rf"(?:{RELATIONS_ZH.pattern}|邻居|同学|同桌|客户|舍友|闺蜜|哥们|兄弟|姐妹|战友|校友|网友|队友|球友|好友|学生|医生|护士|保姆|阿姨|"
    "司机|师傅|师[兄姐弟妹]|导师|教练|上司|下属|徒弟|搭档|伙伴|前任|舅舅?|舅妈|叔叔?|婶婶?|姑姑?|姑[妈父]|姨妈?|姨父|伯[父母]|大伯|"
    "哥|姐|弟|嫂子?|姐夫|妹夫|亲戚|介绍人|合伙人|继承人|猫|狗)(?![费证节])"
)
_SURNAMES_ZH = (
    "王李张刘陈杨赵吴徐孙朱胡郭何罗林梁宋郑谢韩唐冯董萧程曹袁邓许傅沈曾彭吕"
    "苏卢蒋蔡丁魏薛叶余潘戴夏汪姜范谭廖邹陆郝孔崔康邱秦顾侯邵孟段钱汤黎"
)
NAME_ZH = f"(?:[小老阿][\u3400-\u9fff]|[{_SURNAMES_ZH}][\u3400-\u9fff]{{1,2}}?)"

__all__ = ["NAME_ZH", "PERSONS_ZH"]
