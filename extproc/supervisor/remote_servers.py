"""Servers that Envoy calls, from their URLs: address, TLS, and what a request to them names."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from extproc.addresses import address_of
from memory.errors import BadSetting

Tree: TypeAlias = Any
"""YAML or JSON: dicts, lists, strings, numbers, booleans."""

ROOT_CERTIFICATES = (Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pki/tls/certs/ca-bundle.crt"))


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """`discovery`: Envoy's cluster type; `authority`: as the URL has it; `transport_socket`: None without TLS."""

    discovery: str
    address: str
    port: int
    authority: str
    path: str
    transport_socket: Tree


def remote_server(url: str, *, setting: str, example: str) -> RemoteServer:
    """The server of an http or https URL with a valid port, as `memory.settings.checks` leaves it.

    Raises `BadSetting`, which names the setting and shows the example.
    """
    expected = f"{setting} must be a URL such as {example}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise BadSetting(f"{expected}, got {url!r:.200}")
    if parts.username or parts.password:
        raise BadSetting(f"{expected}, without user and password: clients send their own Authorization header")
    if not re.fullmatch(r"[/\w.~%!$&'()*+,;=:@-]*", parts.path, re.ASCII):
        raise BadSetting(f"{expected}, with a path of URL characters only")
    address = None if parts.hostname == "localhost" else address_of(parts.hostname)
    is_tls = parts.scheme == "https"
    return RemoteServer(
        discovery="STATIC" if address else "STRICT_DNS",
        address=str(address or parts.hostname),
        port=parts.port or (443 if is_tls else 80),
        authority=parts.netloc,
        path=parts.path,
        transport_socket=_tls(parts.hostname, is_address=address is not None) if is_tls else None,
    )


def _tls(host: str, *, is_address: bool) -> Tree:
    """TLS with verification of chain and name. An IP address has no SNI, and is matched with the certificate's
    addresses.
    """
    validation: Tree = {
        "trusted_ca": {"filename": str(_system_roots())},
        "match_typed_subject_alt_names": [
            {"san_type": "IP_ADDRESS" if is_address else "DNS", "matcher": {"exact": host}}
        ],
    }
    context: Tree = {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": {"validation_context": validation},
    }
    if not is_address:
        context["sni"] = host
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}


def _system_roots() -> Path:
    """Those of the system, or of the environment's `SSL_CERT_FILE`."""
    known = ssl.get_default_verify_paths().cafile
    for path in (*([Path(known)] if known else []), *ROOT_CERTIFICATES):
        if path.is_file():
            return path
    raise BadSetting("an https URL needs root certificates and this system has none: install ca-certificates")
