"""Who is asking, what hostile ids do not achieve; where a filter may listen, and whom it believes there."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extproc.addresses import SECRET_METADATA, HostAndPort, checked_listener, has_secret
from extproc.identity import Anonymous, IdentityMode, IdentityRules, RefusalReason, RefusedIdentity, identify
from memory.chat.own_fields import MemoryContext
from memory.errors import BadSetting
from memory.model import ID_BYTES_MAX, Scope, is_valid_id
from memory.model.token_claims import CLAIMS_HEADER, ClaimNames

DEVELOPMENT, HEADER, JWT = IdentityMode.DEVELOPMENT, IdentityMode.HEADER, IdentityMode.JWT
BOUND = IdentityRules(ClaimNames(project="projects"))
BOTH = pytest.mark.parametrize("mode", [DEVELOPMENT, HEADER])

HOSTILE_IDS = [
    *(" alice", "alice ", "\talice", "alice\n", "\u3000alice", "\ufeffalice"),
    *("al\x00ice", "al\u200bice", "al\u202eice", "alice\ud800"),
    *("x" * (ID_BYTES_MAX + 1), "é" * (ID_BYTES_MAX // 2 + 1)),
]


def vouched(*values: bytes) -> list[tuple[str, bytes]]:
    return [(":method", b"POST"), *(("x-authz-user-id", value) for value in values)]


def token(**claims: object) -> list[tuple[str, bytes]]:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    return [(":method", b"POST"), (CLAIMS_HEADER, payload)]


@BOTH
def test_nobody_is_anonymous_and_claims_name_nobody_outside_mode_jwt(mode: IdentityMode) -> None:
    assert identify([], None, mode) == Anonymous()
    assert identify(token(sub="alice"), None, mode) == Anonymous()
    assert identify([], MemoryContext(project_id="p", session_id="s"), mode) == Anonymous()


@BOTH
def test_the_header_names_the_user_and_the_body_the_rest(mode: IdentityMode) -> None:
    context = MemoryContext(project_id="p", session_id="s", agent_id="a")
    assert identify(vouched(b"alice"), context, mode) == Scope("alice", "p", "s", "a")
    assert identify(vouched("Zoë ☂".encode()), None, mode) == Scope("Zoë ☂")


@BOTH
def test_a_body_that_agrees_with_the_header_is_fine_and_one_that_does_not_means_no_memory(mode: IdentityMode) -> None:
    assert identify(vouched(b"alice"), MemoryContext("alice"), mode) == Scope("alice")
    for other in ("bob", "Alice", "alice ", "al\u0456ce"):
        assert identify(vouched(b"alice"), MemoryContext(other), mode) == RefusedIdentity(RefusalReason.DISAGREEMENT)


def test_only_in_development_the_body_alone_is_believed() -> None:
    assert identify([], MemoryContext("alice", "p"), DEVELOPMENT) == Scope("alice", "p")
    assert identify([], MemoryContext("alice", "p"), HEADER) == RefusedIdentity(RefusalReason.UNPROVEN_USER)


@BOTH
def test_two_different_headers_are_nobody_and_the_same_one_twice_is_one(mode: IdentityMode) -> None:
    assert identify(vouched(b"alice", b"bob"), None, mode) == RefusedIdentity(RefusalReason.SEVERAL_HEADERS)
    assert identify(vouched(b"alice", b""), None, mode) == RefusedIdentity(RefusalReason.SEVERAL_HEADERS)
    assert identify(vouched(b"alice", b"alice"), None, mode) == Scope("alice")


@BOTH
@pytest.mark.parametrize("value", [b"", b"\xff", b"al\xc3", b"\xed\xa0\x80"])
def test_a_header_that_is_empty_or_not_utf8_is_nobody_even_beside_a_good_body(value: bytes, mode: IdentityMode) -> None:
    refused = RefusedIdentity(RefusalReason.INVALID_HEADER)
    assert identify(vouched(value), None, mode) == refused
    assert identify(vouched(value), MemoryContext("alice"), mode) == refused


@BOTH
@pytest.mark.parametrize("hostile", HOSTILE_IDS)
def test_a_hostile_id_anywhere_means_no_memory_never_everybodys(hostile: str, mode: IdentityMode) -> None:
    in_header = hostile.encode("utf-8", "surrogatepass")
    assert identify(vouched(in_header), None, mode) == RefusedIdentity(RefusalReason.INVALID_HEADER)
    assert isinstance(identify([], MemoryContext(hostile), mode), RefusedIdentity)
    for field, reason in (
        ("project_id", RefusalReason.INVALID_PROJECT),
        ("session_id", RefusalReason.INVALID_SESSION),
        ("agent_id", RefusalReason.INVALID_AGENT),
    ):
        assert identify(vouched(b"alice"), MemoryContext(**{field: hostile}), mode) == RefusedIdentity(reason)


@given(st.text(max_size=300), st.text(max_size=300), st.sampled_from([DEVELOPMENT, HEADER]))
def test_a_scope_is_exactly_what_was_said_or_there_is_none(user_id: str, project_id: str, mode: IdentityMode) -> None:
    found = identify(vouched(user_id.encode("utf-8", "surrogatepass")), MemoryContext(project_id=project_id), mode)
    is_good = is_valid_id(user_id) and (not project_id or is_valid_id(project_id))
    assert found == Scope(user_id, project_id) if is_good else isinstance(found, RefusedIdentity)


def test_in_mode_jwt_only_the_verified_token_names_the_user() -> None:
    assert identify(token(sub="alice"), MemoryContext("alice", "p"), JWT) == Scope("alice", "p")
    assert identify([*vouched(b"eve"), *token(sub="alice")], None, JWT) == Scope("alice")
    assert identify(vouched(b"eve"), None, JWT) == Anonymous()
    assert identify([], None, JWT, "eve") == Anonymous()
    assert identify([], MemoryContext("eve"), JWT) == RefusedIdentity(RefusalReason.UNPROVEN_USER)
    assert identify(token(sub="alice"), MemoryContext("eve"), JWT) == RefusedIdentity(RefusalReason.DISAGREEMENT)


def test_two_tokens_or_one_that_names_nobody_are_refused() -> None:
    two = [*token(sub="alice"), *token(sub="bob")]
    assert identify(two, None, JWT) == RefusedIdentity(RefusalReason.SEVERAL_HEADERS)
    assert identify(token(sub=7), None, JWT) == RefusedIdentity(RefusalReason.INVALID_USER_CLAIM)
    assert identify([(CLAIMS_HEADER, b"?")], None, JWT) == RefusedIdentity(RefusalReason.UNREADABLE_CLAIMS)


def test_the_body_names_the_user_as_the_token_does_whatever_the_tenant() -> None:
    names = IdentityRules(ClaimNames(tenant="tenant"))
    claims = token(sub="alice", tenant="acme")
    assert identify(claims, MemoryContext("alice"), JWT, "", names) == Scope("acme/alice")
    refused = RefusedIdentity(RefusalReason.DISAGREEMENT)
    assert identify(claims, MemoryContext("acme/alice"), JWT, "", names) == refused
    missing = RefusedIdentity(RefusalReason.INVALID_TENANT_CLAIM)
    assert identify(token(sub="alice"), None, JWT, "", names) == missing


def test_a_token_bounds_the_projects_that_a_body_may_name() -> None:
    both, one = token(sub="alice", projects=["red", "blue"]), token(sub="alice", projects="red")
    foreign = RefusedIdentity(RefusalReason.FOREIGN_PROJECT)
    assert identify(both, MemoryContext(project_id="blue"), JWT, "", BOUND) == Scope("alice", "blue")
    assert identify(both, MemoryContext(project_id="green"), JWT, "", BOUND) == foreign
    assert identify(both, None, JWT, "", BOUND) == RefusedIdentity(RefusalReason.PROJECT_NOT_NAMED)
    assert identify(one, None, JWT, "", BOUND) == Scope("alice", "red")
    lacking = RefusedIdentity(RefusalReason.INVALID_PROJECT_CLAIM)
    assert identify(token(sub="alice"), MemoryContext(project_id="red"), JWT, "", BOUND) == lacking


# Where it listens


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("0.0.0.0:50051", "0.0.0.0", 50051), ("[::1]:1", "::1", 1), ("filter-0:65535", "filter-0", 65535)],
)
def test_an_address_is_host_and_port(text: str, host: str, port: int) -> None:
    parsed = HostAndPort.parsed(text)
    assert (parsed.host, parsed.port, parsed.target) == (host, port, text)


@pytest.mark.parametrize("text", ["", ":1", "host", "host:", "host:0", "host:65536", "host:x", "::1:50051", "host:١"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadSetting):
        HostAndPort.parsed(text)


@pytest.mark.parametrize(
    ("listener", "identity", "secret", "says"),
    [
        ("0.0.0.0:1", DEVELOPMENT, "s", "loopback only"),
        ("10.0.0.1:1", DEVELOPMENT, "s", "loopback only"),
        ("0.0.0.0:1", HEADER, "", "need a secret"),
        ("[::]:1", JWT, "", "need a secret"),
        ("example.org:1", HEADER, "s", "an IP address"),
    ],
)
def test_a_filter_that_others_could_reach_is_refused(
    listener: str, identity: IdentityMode, secret: str, says: str
) -> None:
    with pytest.raises(BadSetting, match=says):
        checked_listener(HostAndPort.parsed(listener), identity, secret)


def test_loopback_needs_no_secret_and_the_rest_has_one() -> None:
    for text, mode in (("127.0.0.1:1", DEVELOPMENT), ("[::1]:1", DEVELOPMENT), ("localhost:1", HEADER)):
        assert checked_listener(HostAndPort.parsed(text), mode, "").target == text
    assert checked_listener(HostAndPort.parsed("0.0.0.0:1"), HEADER, "s").target == "0.0.0.0:1"


def test_only_the_same_secret_is_believed_and_none_where_none_is_set() -> None:
    assert has_secret({SECRET_METADATA: "s"}, "s")
    assert has_secret({SECRET_METADATA: b"s"}, "s")
    assert has_secret({}, "")
    assert not has_secret({}, "s")
    assert not has_secret({SECRET_METADATA: ""}, "s")
    assert not has_secret({SECRET_METADATA: "S"}, "s")
    assert not has_secret({SECRET_METADATA: "sé"}, "s")
