"""Where a filter listens and Envoy finds it: a Unix socket of one machine, or host and port across machines.

Whoever reaches a filter is believed about the user. A Unix socket is protected by its folder; beyond that, calls need
the secret that only Envoy has.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from extproc.identity import IdentityMode
from memory.errors import BadSetting

SECRET_METADATA = "x-memory-edge-secret"  # noqa: S105 - its name; as the header of calls to the API
PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class HostAndPort:
    """`host`: an IP address without brackets, or a name. `port`: 1 to 65535."""

    host: str
    port: int

    @classmethod
    def parsed(cls, text: str) -> HostAndPort:
        """From `HOST:PORT`, with an IPv6 address in brackets. Raises `BadSetting`."""
        host, _, port = text.rpartition(":")
        is_bracketed = host.startswith("[") and host.endswith("]")
        if not host or not (port.isascii() and port.isdigit()) or not 1 <= int(port) <= PORT_MAX:
            raise BadSetting(f"expected HOST:PORT, such as 0.0.0.0:50051, got {text!r:.80}")
        if ":" in host and not is_bracketed:
            raise BadSetting(f"an IPv6 address stands in brackets, as in [::1]:50051, got {text!r:.80}")
        return cls(host[1:-1] if is_bracketed else host, int(port))

    @property
    def address(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
        return address_of(self.host)

    @property
    def target(self) -> str:
        """As gRPC takes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is; None for a name other than localhost."""
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host.strip("[]"))
    except ValueError:
        return None


def unix_target(path: Path) -> str:
    return f"unix:{path}"


def checked_listener(listener: HostAndPort, identity: IdentityMode, secret: str) -> HostAndPort:
    """The same, if a filter may listen there. Raises `BadSetting`."""
    address = listener.address
    if address is None:
        raise BadSetting(f"--listen takes an IP address of this machine, such as 0.0.0.0, got {listener.host!r:.80}")
    if address.is_loopback:
        return listener
    if identity is IdentityMode.DEVELOPMENT:
        raise BadSetting(
            f"identity mode development believes every client: a filter then listens on loopback only, got "
            f"{listener.target}. Use identity mode header or jwt"
        )
    if not secret:
        raise BadSetting(
            f"a filter on {listener.target} believes whoever calls it, hence calls need a secret: set "
            "MEMPROXY_EDGE_SECRET to the same value for filters and Envoy, or give --without-secret where nobody but "
            "Envoy can reach it"
        )
    return listener


def has_secret(metadata: Mapping[str, str | bytes], secret: str) -> bool:
    """Whether a call may be believed; every call, where no secret is set."""
    given = metadata.get(SECRET_METADATA, "")
    given = given.encode("utf-8", "replace") if isinstance(given, str) else given
    return not secret or hmac.compare_digest(given, secret.encode("utf-8", "replace"))
