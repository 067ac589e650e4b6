"""Request bodies: JSON that is validated against its type; unknown fields are refused, never ignored."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

import msgspec
from litestar.dto import AbstractDTO
from litestar.dto.data_structures import DTOFieldDefinition
from litestar.openapi.spec import OpenAPIType, Reference, Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

from memory.chat.completions import NotAChat, read_chat_request
from memory.chat.envelopes import Envelopes, of_speaker
from memory.chat.json_spans import NotJson, well_formed
from memory.errors import BadInput
from memory.model import Message
from memory.typed import from_json

BODY_BYTES_MAX = 1 << 20  # 200 memories of ordinary length, or a long history; more takes several calls
HISTORY_MESSAGES_MAX = 1_000

_UNKNOWN_FIELD = re.compile(r"unknown field `(.*?)`(?: - at `\$.*`)?$", re.DOTALL)
_Body = TypeVar("_Body", bound=msgspec.Struct)


class JsonBody(AbstractDTO[Any]):
    """Decodes the `data` of an endpoint as its type says, straight from the bytes of the body."""

    model_type = msgspec.Struct
    repairs_surrogates = False  # lone ones become replacement characters, as in chats

    def decode_bytes(self, value: bytes) -> Any:  # noqa: ANN401 - the type of the endpoint's `data`
        field = self.asgi_connection.route_handler.parsed_data_field
        assert field is not None
        shape = next(one for one in (field.annotation, *field.args) if _is_struct(one))
        if not value.strip() and field.has_default:
            return field.default
        return decoded(_repaired(value) if self.repairs_surrogates else value, shape)

    @classmethod
    def create_for_field_definition(cls, *_: object, **__: object) -> None:
        """Nothing is generated: the type itself decodes."""

    @classmethod
    def create_openapi_schema(cls, field_definition: FieldDefinition, handler_id: str, schema_creator: Any) -> Any:  # noqa: ANN401 - Litestar's, private there
        return schema_creator.for_field_definition(field_definition)

    @classmethod
    def generate_field_definitions(cls, model_type: type[Any]) -> Generator[DTOFieldDefinition, None, None]:
        yield from ()

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        return False


class LenientJsonBody(JsonBody):
    """As `JsonBody`, for text that a chat's JSON may contain and UTF-8 cannot hold."""

    repairs_surrogates = True


class MessagesSchema(OpenAPISchemaPlugin):
    """Describes messages of a chat, which stay raw JSON until the chat parser reads them."""

    @staticmethod
    def is_plugin_supported_type(value: Any) -> bool:  # noqa: ANN401 - Litestar asks for any annotation
        return value is msgspec.Raw

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:  # noqa: ANN401 - private
        properties: dict[str, Schema | Reference] = {
            "role": Schema(type=OpenAPIType.STRING, examples=["user", "assistant"]),
            "content": Schema(description="Text, or a list of parts as in a chat completion."),
        }
        message = Schema(type=OpenAPIType.OBJECT, properties=properties, required=["role"])
        return Schema(
            type=[OpenAPIType.ARRAY, OpenAPIType.NULL],
            items=message,
            description="Messages in the format of a chat completion.",
            examples=[[{"role": "user", "content": "My cat is called Tom"}]],
        )


def decoded(body: bytes, shape: type[_Body]) -> _Body:
    """The parsed body. Raises `BadInput` that says where it differs from the type."""
    try:
        return from_json(body, shape)
    except msgspec.ValidationError as error:
        unknown = _UNKNOWN_FIELD.search(str(error))
        raise BadInput(unknown_name(unknown[1], _fields_of(shape)) if unknown else str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the body is not JSON that we can read: {error}") from None


def messages_of(raw: msgspec.Raw, name: str, envelopes: Envelopes, user_id: str) -> tuple[Message, ...]:
    """Messages in the format of a chat request, read as those of a chat; null and [] give an empty history."""
    if bytes(raw).strip() in (b"null", b"[]"):
        return ()
    try:
        conversation = read_chat_request(b'{"messages":' + bytes(raw) + b"}", envelopes=envelopes).conversation
    except NotAChat as error:
        raise BadInput(f"{name} cannot be read: {error.reason}") from None
    if conversation is None:
        raise BadInput(f'{name} must be a list of messages such as {{"role": "user", "content": "text"}}')
    if len(conversation.messages) > HISTORY_MESSAGES_MAX:
        raise BadInput(f"{name} may hold {HISTORY_MESSAGES_MAX} messages, got {len(conversation.messages)}")
    return of_speaker(conversation, user_id).messages


def unknown_name(name: str, known: Sequence[str]) -> str:
    """What to say about a field or a parameter that is not known."""
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    advice = f"did you mean {nearest[0]}?" if nearest else f"known: {', '.join(known)}"
    return f"unknown field {name[:60]}: {advice}"


def _repaired(body: bytes) -> bytes:
    try:
        return well_formed(body)
    except NotJson as error:
        raise BadInput(f"the body is not JSON that we can read: {error.reason}") from None


def _fields_of(shape: type[msgspec.Struct]) -> list[str]:
    """Field names at any level of the type: the error message of an unknown field does not name the level."""
    listed = [argument for hint in typing.get_type_hints(shape).values() for argument in typing.get_args(hint)]
    return [f.encode_name for one in (shape, *filter(_is_struct, listed)) for f in msgspec.structs.fields(one)]


def _is_struct(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)
