"""Our slim messages against Envoy's full ones: what one side writes, the other reads, both ways, for each one used."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from envoy_data_plane.envoy.config.core import v3 as core
from envoy_data_plane.envoy.extensions.filters.http.ext_proc import v3 as modes
from envoy_data_plane.envoy.service.ext_proc import v3 as theirs
from envoy_data_plane.envoy.type.v3 import HttpStatus, StatusCode
from envoy_data_plane.google.protobuf import Struct as TheirStruct
from google.protobuf.struct_pb2 import Struct

from extproc import wire
from extproc._pb import external_processor_pb2 as ours
from extproc.exchange import OpenedTurn
from extproc.inject import Finish, Proceed, RequestBody, RequestHeaders, ResponseInfo
from memory.model import ChainLink, Placement, RecallStatus

BYTES = bytes(range(256))
CLAIMS: dict[str, Any] = {"claims": {"sub": "alice", "roles": ["a", 1.5, True]}}


def header_map(*pairs: tuple[str, bytes]) -> core.HeaderMap:
    return core.HeaderMap(headers=[core.HeaderValue(key=key, raw_value=value) for key, value in pairs])


def metadata() -> core.Metadata:
    return core.Metadata(
        filter_metadata={
            "memory": TheirStruct.from_dict({"receipt": "r1", "count": "2"}),
            "envoy.filters.http.jwt_authn": TheirStruct.from_dict(CLAIMS),
        }
    )


HEADERS = (":method", b"POST"), (":path", b"/v1/chat/completions?x=1"), ("x-odd", b"\xff\x00"), ("x-empty", b"")

REQUESTS = {
    "request_headers": theirs.ProcessingRequest(
        request_headers=theirs.HttpHeaders(headers=header_map(*HEADERS), end_of_stream=True),
        metadata_context=metadata(),
        protocol_config=theirs.ProtocolConfiguration(request_body_mode=modes.ProcessingModeBodySendMode.BUFFERED),
    ),
    "response_headers": theirs.ProcessingRequest(
        response_headers=theirs.HttpHeaders(headers=header_map((":status", b"200"))), observability_mode=True
    ),
    "request_body": theirs.ProcessingRequest(request_body=theirs.HttpBody(body=BYTES, end_of_stream=True)),
    "response_body": theirs.ProcessingRequest(
        response_body=theirs.HttpBody(body=BYTES), metadata_context=metadata(), observability_mode=True
    ),
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_what_envoy_sends_we_read_and_write_again_as_it_was(kind: str) -> None:
    sent = REQUESTS[kind]
    read = ours.ProcessingRequest.FromString(bytes(sent))
    assert read.WhichOneof("request") == kind
    assert read.observability_mode == sent.observability_mode
    our, their = getattr(read, kind), getattr(sent, kind)
    assert our.end_of_stream == their.end_of_stream
    if kind.endswith("_headers"):
        assert wire.headers_of(our) == [(h.key, h.raw_value) for h in their.headers.headers]
    else:
        assert our.body == their.body
    assert theirs.ProcessingRequest.parse(read.SerializeToString()) == sent, "unknown fields travel along"


def test_events_carry_what_envoy_sent() -> None:
    def event(kind: str) -> Any:
        return wire.injection_event(ours.ProcessingRequest.FromString(bytes(REQUESTS[kind])), 5.0)

    left = {"memory": {"receipt": "r1", "count": "2"}, "envoy.filters.http.jwt_authn": CLAIMS}
    assert event("request_headers") == RequestHeaders(list(HEADERS), is_end=True, metadata=left)
    assert event("request_body") == RequestBody(BYTES, 5.0)
    assert event("response_body") is None
    assert wire.metadata_of(ours.ProcessingRequest.FromString(bytes(REQUESTS["response_body"]))) == left
    assert wire.metadata_of(ours.ProcessingRequest()) == {}


def header(key: str, value: bytes) -> core.HeaderValueOption:
    overwrite = core.HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD
    return core.HeaderValueOption(header=core.HeaderValue(key=key, raw_value=value), append_action=overwrite)


SEND, SKIP = modes.ProcessingModeHeaderSendMode.SEND, modes.ProcessingModeHeaderSendMode.SKIP
NONE = modes.ProcessingModeBodySendMode.NONE
TURN = OpenedTurn(ChainLink("s", "t"), "m")
RECEIPT = ResponseInfo(RecallStatus.USED, 3, "r9", Placement.BEFORE_LAST_USER, ("k1", "k2"), TURN)
TOLD = {"status": "used", "count": "3", "receipt": "r9", "placement": "before_last_user", "note_keys": "k1 k2"}
NEW_BODY = theirs.CommonResponse(
    header_mutation=theirs.HeaderMutation(set_headers=[header("content-length", b"256")]),
    body_mutation=theirs.BodyMutation(body=BYTES),
)
ANSWERS: dict[str, tuple[ours.ProcessingResponse, theirs.ProcessingResponse]] = {
    "the body is wanted": (
        wire.proceed(Proceed(wants_body=True)),
        theirs.ProcessingResponse(request_headers=theirs.HeadersResponse()),
    ),
    "nothing more is, with every part named": (
        wire.proceed(Proceed(wants_body=False)),
        theirs.ProcessingResponse(
            request_headers=theirs.HeadersResponse(),
            mode_override=modes.ProcessingMode(SEND, SKIP, NONE, NONE, SKIP, SKIP),
        ),
    ),
    "a new body, its length as raw value": (
        wire.finish(Finish(BYTES, RECEIPT)),
        theirs.ProcessingResponse(
            request_body=theirs.BodyResponse(response=NEW_BODY),
            dynamic_metadata=TheirStruct.from_dict({"memory": {**TOLD, "turn": TURN.mark()}}),
        ),
    ),
    "the body stays": (wire.finish(Finish()), theirs.ProcessingResponse(request_body=theirs.BodyResponse())),
    "an answer in place of the upstream": (
        wire.reject(),
        theirs.ProcessingResponse(
            immediate_response=theirs.ImmediateResponse(
                status=HttpStatus(code=StatusCode(403)),
                headers=theirs.HeaderMutation(set_headers=[header("content-type", b"application/json")]),
                body=wire.MISMATCH_ANSWER,
                details="identity_mismatch",
            )
        ),
    ),
    "more time": (wire.more_time(1.5), theirs.ProcessingResponse(override_message_timeout=dt.timedelta(seconds=1.5))),
}


def parsed(response: ours.ProcessingResponse) -> theirs.ProcessingResponse:
    return theirs.ProcessingResponse.parse(response.SerializeToString())


@pytest.mark.parametrize("answer", ANSWERS)
def test_envoy_reads_what_we_answer(answer: str) -> None:
    our, their = ANSWERS[answer]
    assert parsed(our) == their


def test_an_empty_body_is_a_change_and_a_receipt_without_an_id_names_none() -> None:
    response = parsed(wire.finish(Finish(b""))).request_body
    assert response is not None
    assert response.response is not None
    assert response.response.body_mutation == theirs.BodyMutation(body=b"")
    expected = Struct()
    expected.update({"memory": {"status": "disabled", "count": "0"}})
    assert wire.finish(Finish(None, ResponseInfo(RecallStatus.DISABLED))).dynamic_metadata == expected


@pytest.mark.parametrize(
    ("our_enum", "their_enum"),
    [
        (ours.HeaderValueOption.AppendAction, core.HeaderValueOptionHeaderAppendAction),
        (ours.ProcessingMode.Headers, modes.ProcessingModeHeaderSendMode),
        (ours.ProcessingMode.Body, modes.ProcessingModeBodySendMode),
    ],
)
def test_every_enum_value_of_ours_is_theirs(our_enum: Any, their_enum: Any) -> None:
    assert all(their_enum[name] == number for name, number in our_enum.items())
