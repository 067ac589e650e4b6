"""Parses our own fields in a request body of any API: the user, the scope, and the options of the request.

Our fields are the top-level `memory_context`, `memory_config` and `auto_store`; they never reach the upstream. The user
in the API's own fields is parsed here as well, and stays in the body. Nothing is guessed: an invalid field of ours
disables memory for the request, both recall and learning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from memory.chat.json_spans import UNREADABLE, Member, string_of, value_of
from memory.model import MEMORY_TYPES, Placement, RequestOptions

CONTEXT = "memory_context"
CONFIG = "memory_config"
AUTO_STORE = "auto_store"  # top-level, as sent by clients of vLLM Semantic Router
OUR_FIELDS = frozenset((CONTEXT, CONFIG, AUTO_STORE))

RETRIEVAL_LIMIT_MAX = 200
TOKEN_BUDGET_MAX = 2_000

_Id: TypeAlias = str | int  # a number is the id of its digits
_ID = msgspec.json.Decoder(_Id | None)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NULL = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """`memory_context` as sent; "" for absent or null fields. `extproc.identity` validates the ids.

    `timezone`: of the user, by its name or offset; one that nobody knows is as good as none.
    """

    user_id: str = ""
    project_id: str = ""
    session_id: str = ""
    agent_id: str = ""
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class OwnFields:
    """As in `ChatRequest`. Unless `is_understood`, `options` disables memory and `named_user` is ""."""

    context: MemoryContext | None
    options: RequestOptions
    is_understood: bool
    named_user: str


class _Config(msgspec.Struct, forbid_unknown_fields=True):  # `{"enable": false}` must not leave memory on
    enabled: bool | None = None
    auto_store: bool | None = None
    memory_types: tuple[Literal[MEMORY_TYPES], ...] | None = None  # type: ignore[valid-type]  # known at run time
    retrieval_limit: Annotated[int, Meta(ge=1, le=RETRIEVAL_LIMIT_MAX)] | None = None
    similarity_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    token_budget: Annotated[int, Meta(ge=1, le=TOKEN_BUDGET_MAX)] | None = None
    placement: Placement | None = None
    profile: bool | None = None
    compact: bool | None = None


_Context = msgspec.defstruct("_Context", [(name, _Id | None, None) for name in MemoryContext.__dataclass_fields__])
_DECODERS: Mapping[str, msgspec.json.Decoder[Any]] = {
    CONTEXT: msgspec.json.Decoder(_Context | None),
    CONFIG: msgspec.json.Decoder(_Config | None),
    AUTO_STORE: msgspec.json.Decoder(bool | None),
}


def own_fields(body: bytes, text: bytes, last: Mapping[str, Member]) -> OwnFields:
    """Parse them from the members of a body, by name. `text`: from `json_spans.parsed`.

    Ours are read as sent: of the text, two ids with lone surrogates would become equal, and no-numbers be numbers.
    """
    said: dict[str, Any] = {}
    is_understood = True
    for name, decoder in _DECODERS.items():
        try:
            said[name] = decoder.decode(value_of(body, last[name])) if name in last else None
        except UNREADABLE:
            said[name], is_understood = None, False
    ids = {name: str(value) for name, value in _given(said[CONTEXT]).items()}
    context = None if said[CONTEXT] is None else MemoryContext(**ids)
    if not is_understood:
        return OwnFields(context, RequestOptions(enabled=False, auto_store=False), is_understood=False, named_user="")
    options = RequestOptions(**_given(said[CONFIG]))
    if said[AUTO_STORE] is False:
        options = replace(options, auto_store=False)
    return OwnFields(context, options, is_understood=True, named_user=_named_user(body, text, last))


def _given(fields: msgspec.Struct | None) -> dict[str, Any]:
    """Null means "not given"."""
    values = msgspec.structs.asdict(fields) if fields is not None else {}
    return {name: value for name, value in values.items() if value is not None}


def _named_user(body: bytes, text: bytes, last: Mapping[str, Member]) -> str:
    """`metadata.user_id`, else `user`. "" for lone surrogates: two such ids would become equal."""
    for name, read_one in (("metadata", _user_of_metadata), ("user", string_of)):
        member = last.get(name)
        found = read_one(text, member)
        if found and member is not None:
            return _without_session(found) if value_of(body, member) == value_of(text, member) else ""
    return ""


class _Device(msgspec.Struct):
    """What Claude Code names in place of a user, in JSON."""

    session_id: str
    device_id: str
    account_uuid: str = ""


_DEVICE = msgspec.json.Decoder(_Device)


def _without_session(user: str) -> str:
    """The account, else the device: Claude Code's id of a user names its session too, and so would be new in each."""
    named, _, session = user.partition("_session_")
    device_id, is_named_so, account = named.removeprefix("user_").partition("_account_")
    if session and is_named_so and user.startswith("user_"):  # before 2.1
        return account or device_id
    try:
        device = _DEVICE.decode(user) if user.startswith("{") else None
    except (*UNREADABLE, UnicodeEncodeError):
        return user
    return user if device is None else device.account_uuid or device.device_id


def _user_of_metadata(text: bytes, member: Member | None) -> str:
    if member is None or text[member.value] != ord("{"):
        return ""
    try:
        found = _ID.decode(_FIELDS.decode(value_of(text, member)).get("user_id", _NULL))
    except UNREADABLE:
        return ""
    return "" if found is None else str(found)
