"""What an upstream's errors tell: its template refuses a note, or a request is too long; and nothing a client wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extproc.edge_trust import EdgeTrust
from extproc.exchange import TurnSeed
from extproc.identity import Headers, IdentityMode
from extproc.observe import LengthRefusal, NoteOutcome, Observation
from extproc.refusals import BODY_BYTES_MAX, context_tokens
from memory.model import Placement

SAYS = "This model's maximum context length is 4096 tokens. However, "


def nested(message: str, **more: object) -> bytes:
    return json.dumps({"error": {"message": message, "type": "BadRequestError", "code": 400, **more}}).encode()


@pytest.mark.parametrize(
    "body",
    [
        nested(SAYS + "your request has 5000 input tokens. Please reduce their number.", param=None),
        nested("this model's maximum context length is 4096 tokens, but the prompt contains 5000 input tokens"),
        nested(SAYS + "you requested 5000", type="invalid_request_error", code="context_length_exceeded"),
        json.dumps({"object": "error", "message": SAYS + "you requested 5000", "type": "BadRequestError"}).encode(),
        nested(f"'max_tokens' or 'max_completion_tokens' is too large: 5000. {SAYS}your request has 100 input tokens"),
        nested("the request exceeds the available context size", type="exceed_context_size_error", n_ctx=4096),
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


# What becomes of a note


SAID = [{"role": "user", "content": "My budget is 10.000."}]
POST: Headers = [(":method", b"POST"), (":path", b"/v1/chat/completions"), ("x-authz-user-id", b"ann")]


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": SAID, **fields}).encode()


def answered(
    status: bytes,
    *pieces: bytes,
    placement: object = "before_last_user",
    is_recording: bool = True,
    is_cut: bool = False,
    **fields: Any,
) -> Observation:
    """One exchange: its reply comes in these pieces, and breaks off after them where it is cut."""
    watch = Observation(EdgeTrust(IdentityMode.DEVELOPMENT), seed=TurnSeed("t1"), is_recording=is_recording)
    watch.on_request_headers(POST)
    watch.on_request_body(body(**fields), is_end=True, at=1.0)
    watch.read_request()
    watch.on_response_headers([(":status", status)], {"memory": {"placement": placement}}, at=2.0)
    for left, piece in enumerate(pieces, 1 - len(pieces)):
        watch.on_response_body(piece, is_end=left == 0 and not is_cut, at=2.0)
    watch.on_end(at=3.0)
    assert watch.is_idle
    return watch


def note_outcome(status: bytes, said: str = "bad request", **more: Any) -> NoteOutcome | None:
    return answered(status, json.dumps({"error": {"message": said}}).encode(), **more).note_outcome


REFUSED = NoteOutcome("m", Placement.BEFORE_LAST_USER, is_refused=True)


@pytest.mark.parametrize(
    ("status", "said", "outcome"),
    [
        (b"400", "bad request", REFUSED),
        (b"500", "System message must be at the beginning.", REFUSED),
        (b"422", "Jinja Exception: no", REFUSED),
        (b"500", "Unexpected role 'system' after role 'user'", REFUSED),
        *((status, "bad request", None) for status in (b"401", b"422", b"429", b"500", b"302", b"")),
        *((status, "Rate limit reached for the chat template project", None) for status in (b"401", b"429", b"503")),
    ],
)
def test_a_400_or_words_of_a_template_refuse_a_note(status: bytes, said: str, outcome: NoteOutcome | None) -> None:
    assert note_outcome(status, said) == outcome


def test_a_note_that_is_taken_is_accepted_where_it_stood() -> None:
    assert note_outcome(b"200", placement="system") == NoteOutcome("m", Placement.SYSTEM, is_refused=False)


@pytest.mark.parametrize("placement", ["before_last_user", ""])
@pytest.mark.parametrize("is_recording", [True, False])
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_request_too_long_tells_the_window_alone(placement: str, *, is_recording: bool, is_cut: bool) -> None:
    said = nested(SAYS + "you requested 5000 tokens (4900 in the messages, 100 in the completion).")
    watch = answered(b"400", said[:50], said[50:], placement=placement, is_recording=is_recording, is_cut=is_cut)
    assert watch.length_refusal == LengthRefusal("m", 4096)
    assert watch.note_outcome is None


def test_a_refusal_whose_text_never_comes_counts_against_the_template_as_before() -> None:
    watch = answered(b"400", placement="system", is_recording=False)
    assert watch.note_outcome == NoteOutcome("m", Placement.SYSTEM, is_refused=True)
    assert watch.length_refusal is None


@pytest.mark.parametrize("placement", ["", None, 1.0, "elsewhere", ["system"]])
def test_a_request_without_a_note_of_ours_is_not_judged(placement: object) -> None:
    assert note_outcome(b"400", placement=placement) is None


def test_a_note_is_judged_where_nothing_is_recorded_but_not_where_memory_is_off() -> None:
    loop = [*SAID, {"role": "assistant", "tool_calls": [{}]}, {"role": "tool", "content": "x"}]
    assert note_outcome(b"400", memory_config={"auto_store": False}) is not None
    assert note_outcome(b"400", messages=loop) is not None
    assert note_outcome(b"400", is_recording=False) is not None
    assert note_outcome(b"400", memory_config={"enabled": False}) is None
