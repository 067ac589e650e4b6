"""What an edit of a chat body changes, and that it changes nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.chat.completions import NotAChat, insert_notes, message_bytes, read_chat_request, strip_memory_fields
from memory.model import Note

OURS = {"memory_context", "memory_config"}
NOTE = Note('Ann\'s "budget" is\n$10,000 \\ é')


def edited(body: bytes, *notes: Note) -> bytes:
    return insert_notes(read_chat_request(body), notes)


def chat(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({"messages": messages, **fields}).encode()


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        (b'{"memory_context":{"user_id":"a"}}', b"{}"),
        (b'{ "memory_context" : {} , "memory_config" : null }', b"{  }"),
        (b'{"memory_context":{},"a":1}', b'{"a":1}'),
        (b'{"a":1,"memory_context":{}}', b'{"a":1}'),
        (b'{"a": 1, "memory_context": {}, "b": 2}', b'{"a": 1, "b": 2}'),
        (b'{\n  "a": 1,\n  "memory_context": {},\n  "memory_config": {}\n}\n', b'{\n  "a": 1\n}\n'),
        (b'{\n  "memory_context": {},\n  "a": 1\n}', b'{\n  "a": 1\n}'),
        (b'{"memory_config":{},"a":1,"memory_context":{},"b":2,"memory_context":5}', b'{"a":1,"b":2}'),
        (b'{"a":1,"memory\\u005fcontext":{},"\\u006Demory_config":{"x":"}"}}', b'{"a":1}'),
        (b'{"a":{"memory_context":1},"Memory_context":2}', b'{"a":{"memory_context":1},"Memory_context":2}'),
        (b'{"memory_context":"\\ud800","a":"\\ud800"}', b'{"a":"\\ud800"}'),
        (b'\xef\xbb\xbf{"memory_context":{},"a":1}', b'\xef\xbb\xbf{"a":1}'),
        (b'\xef\xbb\xbf\n{"a":1.0}', b'\xef\xbb\xbf\n{"a":1.0}'),
    ],
)
def test_our_fields_leave_with_one_comma_and_the_space_beside_it(sent: bytes, left: bytes) -> None:
    assert strip_memory_fields(sent) == left
    assert edited(sent) == left


def test_a_byte_order_mark_stays_and_hides_nothing_from_us() -> None:
    """Parsers of most servers let it pass, so such a body is answered like any other."""
    sent = b"\xef\xbb\xbf" + chat({"role": "user", "content": "Hi"}, memory_context={"user_id": "ann"})
    request = read_chat_request(sent)
    assert request.context is not None
    assert request.context.user_id == "ann"
    left = edited(sent, NOTE)
    assert left.startswith(b"\xef\xbb\xbf{")
    assert json.loads(left)["messages"][0] == {"role": "system", "content": NOTE.text}
    assert "memory_context" not in json.loads(left)
    assert [bytes(message) for message in message_bytes(request)] == [b'{"role": "user", "content": "Hi"}']


def test_the_client_s_spelling_survives() -> None:
    before = (
        rb'{ "temperature" : 1.0e+00, "seed":123456789012345678901234567890, "x":"\ud800\u00e9\/", "a":1,"a":2.50, '
    )
    after = rb'"messages" : [ {"content":"Hi","role":"user"} ]}'
    sent = before + rb'"memory_context" : { "user_id" : "ann" } ,' + after
    inserted = edited(sent, Note("N"))
    assert inserted == before + after.replace(b"[ {", b'[ {"role":"system","content":"N"},{')


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": "Be\n\ud83d\ude00 \ud800 brief."}, f"Be\n\ud83d\ude00 \ud800 brief.\n\n{NOTE.text}"),
        ({"content": ""}, NOTE.text),
        ({"content": None}, NOTE.text),
        ({}, NOTE.text),
        ({"content": []}, [{"type": "text", "text": NOTE.text}]),
        (
            {"content": [{"type": "text", "text": "Be brief."}], "name": "x"},
            [{"type": "text", "text": "Be brief."}, {"type": "text", "text": NOTE.text}],
        ),
    ],
)
def test_a_note_is_merged_after_the_client_s_own_system_text(role: str, message: dict[str, Any], content: Any) -> None:
    body = chat({"role": role, **message}, {"role": "user", "content": "Hi"})
    want = json.loads(body)
    want["messages"][0]["content"] = json.loads(json.dumps(content))
    assert json.loads(edited(body, NOTE)) == want


def test_of_what_is_repeated_the_one_that_counts_gets_the_note() -> None:
    body = b'{"messages":[{"content":"a","role":"system","content" : "b" }]}'
    assert edited(body, Note("N")) == b'{"messages":[{"content":"a","role":"system","content" : "b\\n\\nN" }]}'
    messages = b'{"role":"user","content":"Hi"}]}'
    noted = b'{"messages":[1],"messages":[{"role":"system","content":"N"},' + messages
    assert edited(b'{"messages":[1],"messages":[' + messages, Note("N")) == noted


def test_notes_stand_right_before_their_messages() -> None:
    body = chat(
        {"role": "system", "content": "S"},
        {"role": "user", "content": "1"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "3"},
    )
    got = json.loads(edited(body, Note("late", before=3), Note("early", before=1), Note("a"), Note("b")))["messages"]
    assert [message["content"] for message in got] == ["S\n\na\n\nb", "early", "1", "2", "late", "3"]
    assert [message["role"] for message in got] == ["system", "system", "user", "assistant", "system", "user"]
    got = json.loads(edited(chat({"role": "user", "content": "1"}), Note("own", before=0), Note("merged")))["messages"]
    assert [message["content"] for message in got] == ["merged", "own", "1"]


def test_a_note_with_half_a_surrogate_pair_does_not_break_the_body() -> None:
    got = edited(chat({"role": "user", "content": "Hi"}), Note("a\ud800b"))
    assert json.loads(got)["messages"][0]["content"] == "a?b"


# Any body

space = st.sampled_from(["", " ", "\n  ", "\t", "\r\n"])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
half_pairs = st.sampled_from(["\ud800", "\udfff", "\ud83d\ude00", '"', "\\", "a", "\\u", "é"])
texts = st.text() | st.lists(half_pairs).map("".join)
contents = texts | st.none() | st.lists(texts | st.fixed_dictionaries({"type": st.just("text"), "text": texts}))
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool"])},
        optional={"content": contents, "name": st.text()},
    ),
    min_size=1,
    max_size=5,
)
names = st.text(max_size=3) | st.sampled_from(["model", "stream", "memory", "a"])


@st.composite
def spelt(draw: st.DrawFn, value: Any) -> str:
    """One of the many spellings of a value, on one line or on several, ASCII or not."""
    spelling = json.dumps(
        value, ensure_ascii=draw(st.booleans()) or _has_half_pairs(value), indent=draw(st.none() | st.just(1))
    )
    return draw(space) + spelling + draw(space)


def _has_half_pairs(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, str, int]:
    """A body, the same without our fields, and how many messages it has. Every member carries its own white space."""
    kept = [(draw(spelt(name)), draw(spelt(draw(values)))) for name in draw(st.lists(names, max_size=4))]
    listed = draw(messages)
    kept.insert(draw(st.integers(0, len(kept))), ('"messages"', draw(spelt(listed))))
    ours = draw(st.lists(st.sampled_from([*sorted(OURS), "memory\\u005fcontext"]), max_size=3))
    fields = list(kept)
    for name in ours:
        fields.insert(draw(st.integers(0, len(fields))), (f'"{name}"', draw(spelt(draw(values)))))
    joined = ("{" + ",".join(f"{name}:{value}" for name, value in some) + "}" for some in (fields, kept))
    return next(joined), next(joined), len(listed)


def _squeezed(text: bytes) -> bytes:
    return b"".join(text.split())


@given(bodies(), st.data())
def test_stripping_takes_our_fields_and_nothing_else_and_an_edit_splices_the_notes_into_what_is_left(
    case: tuple[str, str, int], data: st.DataObject
) -> None:
    body, left, count = case
    stripped = strip_memory_fields(body.encode())
    assert json.loads(stripped) == json.loads(left)
    assert _squeezed(stripped) == _squeezed(left.encode())
    assert strip_memory_fields(stripped) is stripped
    notes = data.draw(st.lists(st.builds(Note, texts.filter(bool), st.none() | st.integers(0, count - 1)), max_size=3))
    got = edited(body.encode(), *notes)
    assert json.loads(got) == _with_notes(json.loads(stripped), notes)
    assert _is_subsequence(stripped, got) or any(note.before is None for note in notes)  # null is replaced


def _with_notes(body: dict[str, Any], notes: list[Note]) -> dict[str, Any]:
    """The rule again, on parsed JSON."""
    listed: list[dict[str, Any]] = []
    clean = [Note(note.text.encode(errors="replace").decode(), note.before) for note in notes]
    for index, message in enumerate(body["messages"]):
        listed += [{"role": "system", "content": note.text} for note in clean if note.before == index]
        listed.append(message)
    merged = "\n\n".join(note.text for note in clean if note.before is None)
    first = body["messages"][0]
    if merged and first["role"] in ("system", "developer"):
        content = first.get("content")
        if isinstance(content, list):
            first["content"] = [*content, {"type": "text", "text": merged}]
        else:
            first["content"] = f"{content}\n\n{merged}" if content else merged
    elif merged:
        listed.insert(0, {"role": "system", "content": merged})
    return {**body, "messages": listed}


def _is_subsequence(short: bytes, long: bytes) -> bool:
    rest = iter(long)
    return all(byte in rest for byte in short)


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()))
@example(b'{"a":"\\ud800\\')
@example(b'{"memory_context"}')
def test_anything_is_either_refused_or_stripped(body: bytes) -> None:
    try:
        stripped = strip_memory_fields(body)
    except NotAChat:
        return
    assert not OURS & json.loads(stripped).keys()
    assert json.loads(stripped) == {key: value for key, value in json.loads(body).items() if key not in OURS}
