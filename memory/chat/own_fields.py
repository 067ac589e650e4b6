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
UNKNOWN_KEY = f"{CONFIG}.unknown_key"  # the problem reported for an unknown key; the key itself is client text

RETRIEVAL_LIMIT_MAX = 200
TOKEN_BUDGET_MAX = 2_000

_Id: TypeAlias = str | int  # a number is the id of its digits
_ID = msgspec.json.Decoder(_Id | None)
_FLAG = msgspec.json.Decoder(bool | None)
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
    """All parsed fields. With any problem `options` disables memory and `named_user` is ""; see `ChatRequest`."""

    context: MemoryContext | None
    options: RequestOptions
    problems: tuple[str, ...]
    named_user: str


def own_fields(body: bytes, text: bytes, last: Mapping[str, Member]) -> OwnFields:
    """Parse them from the members of a body, by name. `text`: from `json_spans.parsed`."""
    context, problems = _context(text, last.get(CONTEXT))
    options, more_problems = _options(text, last.get(CONFIG))
    problems += more_problems
    for name in (CONTEXT, CONFIG):
        if name in last and value_of(body, last[name]) != value_of(text, last[name]):
            context, problems = None, (name,)  # lone surrogates: two such ids would become equal; or no-numbers
    try:
        if AUTO_STORE in last and _FLAG.decode(value_of(text, last[AUTO_STORE])) is False:
            options = replace(options, auto_store=False)
    except UNREADABLE:
        problems += (AUTO_STORE,)
    if problems:
        return OwnFields(context, RequestOptions(enabled=False, auto_store=False), problems, "")
    return OwnFields(context, options, (), _named_user(body, text, last))


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


def _context(text: bytes, member: Member | None) -> tuple[MemoryContext | None, tuple[str, ...]]:
    values, problems = _known_fields(text, member, CONTEXT, _CONTEXT_FIELDS)
    if values is None or problems:
        return None, problems
    return MemoryContext(**{name: str(value) for name, value in values.items()}), ()


def _options(text: bytes, member: Member | None) -> tuple[RequestOptions, tuple[str, ...]]:
    """An unknown key is a problem here: `{"enable": false}` must not leave memory on."""
    values, problems = _known_fields(text, member, CONFIG, _CONFIG_FIELDS, unknown=(UNKNOWN_KEY,))
    if values is None or problems:
        return RequestOptions(), problems
    return RequestOptions(**values), ()


_Decoders: TypeAlias = Mapping[str, msgspec.json.Decoder[Any]]


def _known_fields(
    text: bytes, member: Member | None, name: str, decoders: _Decoders, *, unknown: tuple[str, ...] = ()
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The given values that are of their types, and the names of those that are not. Null means "not given".

    Keys without a type are ignored, or reported as the problem `unknown`.
    """
    if member is None or text.startswith(b"null", member.value):
        return None, ()
    try:
        fields = _FIELDS.decode(value_of(text, member))
    except UNREADABLE:
        return None, (name,)
    values: dict[str, Any] = {}
    problems = [] if fields.keys() <= decoders.keys() else [*unknown]
    for key, decoder in decoders.items():
        if key not in fields:
            continue
        try:
            value = decoder.decode(fields[key])
        except UNREADABLE:
            problems.append(f"{name}.{key}")
            continue
        if value is not None:
            values[key] = value
    return values, tuple(problems)


def _decoders(**types: Any) -> _Decoders:  # noqa: ANN401 - types
    return {name: msgspec.json.Decoder(kind | None) for name, kind in types.items()}


_CONTEXT_FIELDS = _decoders(**dict.fromkeys(MemoryContext.__dataclass_fields__, _Id))
_CONFIG_FIELDS = _decoders(
    enabled=bool,
    auto_store=bool,
    memory_types=tuple[Literal[MEMORY_TYPES], ...],  # type: ignore[valid-type]  # which are known at run time alone
    retrieval_limit=Annotated[int, Meta(ge=1, le=RETRIEVAL_LIMIT_MAX)],
    similarity_threshold=Annotated[float, Meta(ge=0, le=1)],
    token_budget=Annotated[int, Meta(ge=1, le=TOKEN_BUDGET_MAX)],
    placement=Placement,
    profile=bool,
    compact=bool,
)
