"""Which errors of model servers tell the context window, and that nothing a client wrote is taken for one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extproc.refusals import BODY_BYTES_MAX, context_tokens

SAYS = "This model's maximum context length is 4096 tokens. However, "


def nested(message: str, **more: object) -> bytes:
    return json.dumps({"error": {"message": message, "type": "BadRequestError", "code": 400, **more}}).encode()


@pytest.mark.parametrize(
    "body",
    [
        nested(
            SAYS + "you requested 100 output tokens and your prompt contains 4090 input tokens, for a total of 4190."
        ),
        nested(
            SAYS + "your request has 5000 input tokens. Please reduce the length of the input messages.", param=None
        ),
        nested("this model's maximum context length is 4096 tokens, but the prompt contains 5000 input tokens"),
        nested(
            SAYS + "you requested 5000 tokens in the messages",
            type="invalid_request_error",
            code="context_length_exceeded",
        ),
        json.dumps(
            {"object": "error", "message": SAYS + "you requested 5000", "type": "BadRequestError", "code": 400}
        ).encode(),
        nested(f"'max_tokens' or 'max_completion_tokens' is too large: 5000. {SAYS}your request has 100 input tokens"),
        nested(
            "the request exceeds the available context size",
            type="exceed_context_size_error",
            n_prompt_tokens=5000,
            n_ctx=4096,
        ),
    ],
)
def test_a_server_s_own_words_tell_its_window(body: bytes) -> None:
    assert context_tokens(body) == 4096


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"Bad Request",
        b"[" * 100_000,
        b'{"error": "too long"}',
        b'{"error": null, "message": 3}',
        nested("bad request"),
        nested(f'1 validation error: input_value="{SAYS}"'),
        nested(f"The model `{SAYS}` does not exist."),
        nested(f"'max_tokens' or 'max_completion_tokens' is too large: x. {SAYS}"),
        nested("This model's maximum context length is 4096"),
        nested("This model's maximum context length is 4096 pages."),
        nested("This model's maximum context length is -1 tokens."),
        nested("This model's maximum context length is ٤٠٩٦ tokens."),
        nested("This model's maximum context length is 1 tokens."),
        nested("This model's maximum context length is " + "9" * 5_000 + " tokens."),
        nested("x", type="exceed_context_size_error"),
        nested("x", type="exceed_context_size_error", n_ctx=1),
        nested(SAYS + "x" * BODY_BYTES_MAX),
    ],
)
def test_other_errors_and_what_a_client_wrote_tell_nothing(body: bytes) -> None:
    assert context_tokens(body) is None


@given(st.binary(max_size=300))
def test_whatever_a_server_sends_is_read_without_an_error(body: bytes) -> None:
    assert context_tokens(body) is None
