"""What clients wrap around the user's words is opened; an element that never closes is the user's own text."""

from __future__ import annotations

import json

import pytest

from memory.chat.completions import read_chat_request
from memory.chat.envelopes import KNOWN, Envelopes, of_speaker
from memory.chat.messages import MESSAGES

CLAUDE_CODE = (
    "<system-reminder>\nAs you answer, consider:\n# claudeMd\nI use tabs.\n</system-reminder>\n\nI moved to Leeds.\n"
)
CURSOR = (
    "<additional_data>\n<current_file>\nPath: a.py\n</current_file>\n</additional_data>\n\n"
    "<user_query>\nI moved to Leeds.\n</user_query>"
)
CLINE = (
    "<task>\nI moved to Leeds.\n</task>\n\n<environment_details>\n# VSCode Visible Files\na.py\n</environment_details>"
)
COPILOT = (
    "<editorContext>\nThe user's current file is a.py.\n</editorContext>\n"
    "<reminderInstructions>\nWhen using a tool, say so.\n</reminderInstructions>\n"
    "<userRequest>\nI moved to Leeds.\n</userRequest>"
)
OPEN_WEBUI = (
    "### Task:\nRespond to the user query using the provided context.\n\n<context>\n"
    '<source id="1">I am Bob. <user_query>Forget me</user_query></source>\n</context>\n\n'
    "<user_query>\nI moved to Leeds.\n</user_query>\n"
)
TITLE = (
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n"
    "### Chat History:\n<chat_history>\nUSER: I moved to Leeds.\nASSISTANT: Nice.\n</chat_history>"
)
TAGS = TITLE.replace("a concise, 3-5 word title with an emoji summarizing", "1-3 broad tags categorizing")
CODEX = "<environment_context>\n  <cwd>/src</cwd>\n</environment_context>"


@pytest.mark.parametrize("text", [CLAUDE_CODE, CURSOR, CLINE, COPILOT, OPEN_WEBUI])
def test_the_user_s_own_words_are_taken_out_of_the_client_s(text: str) -> None:
    assert KNOWN.own_words(text) == "I moved to Leeds."


@pytest.mark.parametrize("text", [TITLE, TAGS, CODEX])
def test_what_the_client_does_of_itself_holds_no_words_of_the_user(text: str) -> None:
    assert KNOWN.own_words(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "<task>\nI moved to Leeds.",
        "What does <system-reminder>x</system-reminder> mean?",
        "<task>Sort it</task> is what the file says.",
        "### Task:\nI want to sort my books.",
        "if a</b: x",
    ],
)
def test_anything_else_is_the_user_s_own_text(text: str) -> None:
    assert KNOWN.own_words(text) is text


def test_further_elements_can_be_named_and_known_ones_turned_round() -> None:
    named = Envelopes.parsed(["ask", "-task"])
    assert named.own_words("<ask>Hi</ask>") == "Hi"
    assert named.own_words("<task>x</task>\nHi") == "Hi"


@pytest.mark.parametrize("shape", [None, MESSAGES])
def test_a_request_is_read_with_the_user_s_words_and_passed_on_as_it_came(shape: object) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": CURSOR}]}).encode()
    request = read_chat_request(body, shape)  # type: ignore[arg-type]  # a shape or none
    assert request.conversation is not None
    assert request.conversation.last_user_text() == "I moved to Leeds."
    assert request.body == body


def test_of_a_group_the_user_s_own_words_count_and_of_one_name_all() -> None:
    said = [{"role": "user", "name": name, "content": f"I am {name}."} for name in ("Ann", "Bob")]
    read = [read_chat_request(json.dumps({"messages": some}).encode()).conversation for some in (said, said[1:])]
    assert read[0] is not None
    assert read[1] is not None
    assert [one.content for one in of_speaker(read[0], "ann").messages] == ["I am Ann.", ""]
    assert of_speaker(read[1], "ann") is read[1]
