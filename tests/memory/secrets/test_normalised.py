"""However a text is written, finders see it plainly, and each place leads back to the characters that it stands for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.secrets.normalised import normalised

ODD = st.sampled_from(
    ["\u00a0", "  ", "\u200b", "\\u0041", "\\u200d", "**", "&nbsp;", "–", "１", "“", "\\n", '"', "\\", "a", "4"]
)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("my\u00a0PIN\u2009is\t4471", "my PIN is 4471"),
        ("pass\u00adword\u200b: x", "password: x"),
        ("my   PIN", "my PIN"),
        ("  indented:\n    too", "  indented:\n    too"),
        (r'{"a": "my \u0050IN\u00a0is\n4471"}', '{"a": "my PIN is\n4471"}'),
        (r"\\\"\\\\u0041", '"A'),
        (r"C:\new", r"C:\new"),
        ("**PIN**: ***4471*** ******", "PIN: 4471 ******"),
        ("“a” ‘b’ «c»", '"a" \'b\' "c"'),
        ("4111–1111—1111 a—b a–b x – y", "4111-1111-1111 a—b a-b x - y"),
        ("ＰＩＮ：４４７１ 𝗣𝗜𝗡 ٤٤", "PIN:4471 PIN 44"),
        ("a&nbsp;b&#x200b;c&quot; R&D; x²", 'a bc" R&D; x²'),
    ],
)
def test_what_is_written_otherwise_is_folded(written: str, plain: str) -> None:
    assert normalised(written).text == plain


@given(st.lists(st.one_of(ODD, st.text(max_size=3)), max_size=20))
def test_each_place_leads_back_to_its_own_characters(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = normalised(text)
    position = 0
    for at in range(len(found.text)):
        start, end = found.original(at, at + 1)
        assert position <= start < end <= len(text)
        position = end
    if found.text:
        assert found.original(0, len(found.text))[1] == position


def test_a_plain_text_is_the_same_object() -> None:
    text = "I live in Leeds, and my password is too weak"
    assert normalised(text).text is text
