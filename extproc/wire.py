"""Converts between protobuf messages and plain events and commands. Decides nothing.

The messages are our slim copies of Envoy's (proto/), compiled for upb: a betterproto2 message takes a hundred times as
long. A changed body and its content-length are set together, because Envoy answers 500 if they do not match.
"""

from __future__ import annotations

from typing import Final

import msgspec
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from extproc._pb import external_processor_pb2 as pb
from extproc.exchange import Observed
from extproc.identity import Headers, Metadata
from extproc.inject import Event, Finish, Proceed, RequestBody, RequestHeaders, ResponseInfo
from extproc.observe import (
    METADATA_NAMESPACE,
    NOTE_KEYS_KEY,
    PLACEMENT_KEY,
    RECEIPT_KEY,
    STATUS_KEY,
    TURN_KEY,
    Observation,
)

SERVICE: Final = "envoy.service.ext_proc.v3.ExternalProcessor"  # Envoy's name; our package has another one
METHOD: Final = "Process"

MISMATCH_ANSWER: Final = msgspec.json.encode(  # an error in the format of OpenAI's API
    {
        "error": {
            "message": "memory_context names another user or project than the one that is authenticated",
            "type": "permission_error",
            "param": "memory_context",
            "code": "identity_mismatch",
        }
    }
)


def headers_of(message: pb.HttpHeaders) -> Headers:
    """Lower-case names, as Envoy sends them. `value` is used by an Envoy configured not to send bytes."""
    return [(header.key, header.raw_value or header.value.encode()) for header in message.headers.headers]


def metadata_of(message: pb.ProcessingRequest) -> Metadata:
    """The metadata of this message. It is part of every chunk: decode it once, where it is needed."""
    if not message.HasField("metadata_context"):
        return {}
    return {name: MessageToDict(struct) for name, struct in message.metadata_context.filter_metadata.items()}


def injection_event(message: pb.ProcessingRequest, at: float) -> Event | None:
    """The event for the request side; None for a message that it did not request."""
    match message.WhichOneof("request"):
        case "request_headers":
            headers = message.request_headers
            return RequestHeaders(headers_of(headers), headers.end_of_stream, metadata_of(message))
        case "request_body":
            return RequestBody(message.request_body.body, at)
        case _:
            return None


def observe(message: pb.ProcessingRequest, at: float, observation: Observation) -> Observed | None:
    """Pass a message to the reply side. Metadata is decoded at the response headers, where it is new."""
    match message.WhichOneof("request"):
        case "request_headers":
            headers = message.request_headers
            observation.on_request_headers(headers_of(headers), is_end=headers.end_of_stream)
            return None
        case "request_body":
            body = message.request_body
            observation.on_request_body(body.body, is_end=body.end_of_stream, at=at)
            return None
        case "response_headers":
            headers = message.response_headers
            metadata = metadata_of(message)
            return observation.on_response_headers(headers_of(headers), metadata, at=at, is_end=headers.end_of_stream)
        case "response_body":
            body = message.response_body
            return observation.on_response_body(body.body, is_end=body.end_of_stream, at=at)
        case _:
            return None


def left_by_inject(message: pb.ProcessingRequest) -> Metadata | None:
    return metadata_of(message) if message.WhichOneof("request") == "response_headers" else None


def ends_reply(message: pb.ProcessingRequest) -> bool:
    return message.response_body.end_of_stream


def proceed(command: Proceed) -> pb.ProcessingResponse:
    response = pb.ProcessingResponse()
    response.request_headers.SetInParent()
    if not command.wants_body:
        response.mode_override.CopyFrom(_NOTHING_MORE)
    return response


def finish(command: Finish) -> pb.ProcessingResponse:
    response = pb.ProcessingResponse()
    response.request_body.SetInParent()
    if command.body is not None:
        changes = response.request_body.response
        changes.body_mutation.body = command.body
        _set_header(changes.header_mutation, "content-length", str(len(command.body)).encode())
    if command.receipt is not None:
        response.dynamic_metadata.CopyFrom(_receipt(command.receipt))
    return response


def reject() -> pb.ProcessingResponse:
    """Answer in place of the upstream, which does not get the request. Envoy obeys only if it is configured to."""
    response = pb.ProcessingResponse()
    answer = response.immediate_response
    answer.status.code = pb.HttpStatus.FORBIDDEN
    _set_header(answer.headers, "content-type", b"application/json")
    answer.body = MISMATCH_ANSWER
    answer.details = "identity_mismatch"
    return response


def more_time(seconds: float) -> pb.ProcessingResponse:
    """In place of an answer: ask Envoy to wait for `seconds` from now. Once per message."""
    response = pb.ProcessingResponse()
    response.override_message_timeout.FromNanoseconds(int(seconds * 1e9))
    return response


def _set_header(mutation: pb.HeaderMutation, name: str, value: bytes) -> None:
    """The value must be a `raw_value`: as `value` it would arrive empty."""
    mutation.set_headers.add(
        header=pb.HeaderValue(key=name, raw_value=value), append_action=pb.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD
    )


def _receipt(receipt: ResponseInfo) -> Struct:
    """Strings only: a number would be rendered as a float in the response header."""
    values = {STATUS_KEY: receipt.status.value, "count": str(receipt.count)}
    if receipt.receipt_id:
        values[RECEIPT_KEY] = receipt.receipt_id
    if receipt.placement is not None:
        values[PLACEMENT_KEY] = receipt.placement.value
    if mark := receipt.opened.mark() if receipt.opened is not None else "":
        values[TURN_KEY] = mark
    if receipt.note_keys:
        values[NOTE_KEYS_KEY] = " ".join(receipt.note_keys)
    struct = Struct()
    struct.update({METADATA_NAMESPACE: values})
    return struct


_NOTHING_MORE: Final = pb.ProcessingMode(  # all parts are named: unset ones would count as disabled or default
    request_headers=pb.ProcessingMode.SEND,
    response_headers=pb.ProcessingMode.SKIP,
    request_body=pb.ProcessingMode.NONE,
    response_body=pb.ProcessingMode.NONE,
    request_trailers=pb.ProcessingMode.SKIP,
    response_trailers=pb.ProcessingMode.SKIP,
)
