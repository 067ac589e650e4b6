"""Where a filter may listen, and whom it believes there."""

from __future__ import annotations

import pytest

from extproc.addresses import SECRET_METADATA, HostAndPort, checked_listener, has_secret
from extproc.identity import IdentityMode
from memory.errors import BadSetting


@pytest.mark.parametrize(
    ("text", "host", "port", "target"),
    [
        ("0.0.0.0:50051", "0.0.0.0", 50051, "0.0.0.0:50051"),
        ("[::1]:1", "::1", 1, "[::1]:1"),
        ("filter-0:65535", "filter-0", 65535, "filter-0:65535"),
    ],
)
def test_an_address_is_host_and_port(text: str, host: str, port: int, target: str) -> None:
    parsed = HostAndPort.parsed(text)
    assert (parsed.host, parsed.port, parsed.target) == (host, port, target)


@pytest.mark.parametrize("text", ["", ":1", "host", "host:", "host:0", "host:65536", "host:x", "::1:50051", "host:١"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadSetting):
        HostAndPort.parsed(text)


@pytest.mark.parametrize(
    ("listener", "identity", "secret", "says"),
    [
        ("0.0.0.0:1", IdentityMode.DEVELOPMENT, "s", "loopback only"),
        ("10.0.0.1:1", IdentityMode.DEVELOPMENT, "s", "loopback only"),
        ("0.0.0.0:1", IdentityMode.HEADER, "", "need a secret"),
        ("[::]:1", IdentityMode.JWT, "", "need a secret"),
        ("example.org:1", IdentityMode.HEADER, "s", "an IP address"),
    ],
)
def test_a_filter_that_others_could_reach_is_refused(
    listener: str, identity: IdentityMode, secret: str, says: str
) -> None:
    with pytest.raises(BadSetting, match=says):
        checked_listener(HostAndPort.parsed(listener), identity, secret)


@pytest.mark.parametrize(
    ("listener", "identity", "secret"),
    [
        ("127.0.0.1:1", IdentityMode.DEVELOPMENT, ""),
        ("[::1]:1", IdentityMode.DEVELOPMENT, ""),
        ("localhost:1", IdentityMode.HEADER, ""),
        ("0.0.0.0:1", IdentityMode.HEADER, "s"),
    ],
)
def test_loopback_needs_no_secret_and_the_rest_has_one(listener: str, identity: IdentityMode, secret: str) -> None:
    parsed = HostAndPort.parsed(listener)
    assert checked_listener(parsed, identity, secret) == parsed


def test_only_the_same_secret_is_believed_and_none_where_none_is_set() -> None:
    assert has_secret({SECRET_METADATA: "s"}, "s")
    assert has_secret({SECRET_METADATA: b"s"}, "s")
    assert has_secret({}, "")
    assert not has_secret({}, "s")
    assert not has_secret({SECRET_METADATA: ""}, "s")
    assert not has_secret({SECRET_METADATA: "S"}, "s")
    assert not has_secret({SECRET_METADATA: "sé"}, "s")
