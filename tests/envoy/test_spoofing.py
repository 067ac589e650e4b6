"""Everything that somebody may try to be somebody else, through the whole product: 0 leaks, and nothing learnt.

The victim's memory must reach neither the upstream nor an answer of the API, and nothing that is said meanwhile may be
stored as the victim's. Each attempt goes to chats and to the API, over HTTP/1.1 written by hand and over HTTP/2.
"""

from __future__ import annotations

import base64
import json
import socket
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import h2.exceptions
import httpx
import pytest
from edge_gateway import ELSEWHERE, GATEWAY, IMPORTER, TENANT, VICTIM, VICTIM_ID, Edge
from product import Product, eventually
from token_issuer import DROPPED, LATER, LONG_AGO, TokenIssuer, signed, signed_with_secret, unsigned, with_claims
from upstream import RecordingUpstream

pytestmark = pytest.mark.full("a product for each mode, and thousands of requests")
SECRET = "My storage unit at the harbour is 99-13-57."
QUESTION = "Which storage unit at the harbour is mine?"
COMBINATION = b"99-13-57"
PLANT = "My locker at the station is 55-44-33."
Headers = list[tuple[bytes, bytes]]
JSON: Headers = [(b"content-type", b"application/json")]
ACCEPT = (b"accept", b"application/json, text/event-stream")  # which MCP demands
MCP = "/v1/memory/mcp"
ALIKE = (
    *("RENÉ", "rene", "ren\u0117", "rené.", "rené,rené", "rené, mallory", "rené;", '"rené"', "ｒｅｎé", "rené/"),
    *("%72en%C3%A9", unicodedata.normalize("NFD", VICTIM), f" {VICTIM}", f"{VICTIM} ", f"\t{VICTIM}"),
    *(f"{VICTIM}\u00a0", f"{VICTIM}\u200b", f"\ufeff{VICTIM}", f"{VICTIM}\x00", f"{VICTIM}\x7f", "re\x00né"),
    *(f"{VICTIM}\u202e", f"acme/{VICTIM}"),
)


@dataclass(frozen=True)
class Attempt:
    """One way to claim to be the victim."""

    name: str
    headers: Headers = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    query: str = ""


def forged_headers() -> list[Attempt]:
    """For both modes: what a client can write into headers, bodies and queries."""
    victim = VICTIM.encode()
    claims = base64.urlsafe_b64encode(json.dumps({"sub": VICTIM, "tenant": TENANT}).encode()).rstrip(b"=")
    quoted = "ren%C3%A9"
    named = [b"x-authz-user-id", b"X-Authz-User-Id", b"X-AUTHZ-USER-ID", b"x_authz_user_id", b"x-authz-user_id"]
    attempts = [Attempt(f"header {name!r}", [(name, victim)]) for name in named]
    attempts += [
        Attempt("header twice", [(b"x-authz-user-id", victim), (b"x-authz-user-id", victim)]),
        Attempt("header and another", [(b"x-authz-user-id", b"mallory"), (b"X-Authz-User-Id", victim)]),
        Attempt("header, joined", [(b"x-authz-user-id", victim + b", mallory")]),
        Attempt("header, spaces", [(b"x-authz-user-id", b"  " + victim + b" \t ")]),
        Attempt("header, NUL", [(b"x-authz-user-id", victim + b"\x00")]),
        Attempt("header, folded line", [(b"x-authz-user-id", b"\r\n " + victim)]),
        Attempt("header, bare CR", [(b"x-other", b"1\rx-authz-user-id: " + victim)]),
        Attempt("header name with a space", [(b"x-authz-user-id ", victim)]),
        Attempt("Latin-1", [(b"x-authz-user-id", VICTIM.encode("latin-1"))]),
        Attempt("connection header", [(b"connection", b"x-authz-user-id"), (b"x-authz-user-id", victim)]),
        Attempt("token claims", [(b"x-memory-token-claims", claims)]),
        Attempt("token claims, case", [(b"X-Memory-Token-Claims", claims), (b"x-memory-token-claims", claims)]),
        Attempt("token claims, underscores", [(b"x_memory_token_claims", claims)]),
        Attempt("edge secret", [(b"x-memory-edge-secret", b""), (b"x-authz-user-id", victim)]),
        Attempt("secret and claims", [(b"x-memory-edge-secret", b"guess"), (b"x-memory-token-claims", claims)]),
        Attempt("service token", [(b"authorization", b"Bearer mpt_" + b"0" * 40)], query=f"user_id={quoted}"),
        Attempt("query", query=f"user_id={quoted}"),
        Attempt("query, header name", query=f"x-authz-user-id={quoted}&memory_context.user_id={quoted}"),
        Attempt("body", fields={"memory_context": {"user_id": VICTIM}}),
        Attempt("body user", fields={"user": VICTIM}),
        Attempt("body metadata", fields={"metadata": {"user_id": VICTIM}}),
        Attempt("all of the body", fields={k: {"user_id": VICTIM} for k in ("memory_context", "metadata")}),
        Attempt("body and header", [(b"x-authz-user-id", victim)], {"memory_context": {"user_id": VICTIM}}),
    ]
    return attempts + [Attempt(f"body {one!r}", fields={"memory_context": {"user_id": one}}) for one in ALIKE]


def through_the_gateway() -> list[Attempt]:
    """What a trusted gateway sends for other users: whose ids resemble the victim's, or who name the victim."""
    mallory = (b"x-authz-user-id", b"mallory")
    attempts = [
        Attempt("body", [mallory], {"memory_context": {"user_id": VICTIM}}),
        Attempt("body user", [mallory], {"user": VICTIM, "metadata": {"user_id": VICTIM}}),
        Attempt("query", [mallory], query="user_id=ren%C3%A9"),
        Attempt("two lines", [mallory, (b"x-authz-user-id", VICTIM.encode())]),
        Attempt("underscores", [mallory, (b"x_authz_user_id", VICTIM.encode())]),
    ]
    # HTTP itself takes white space from the edges of a value: a gateway cannot name such a user, and must not
    alike = [one for one in ALIKE if one.strip(" \t") != VICTIM]
    return attempts + [Attempt(f"alike {one!r}", [(b"x-authz-user-id", one.encode())]) for one in alike]


def bearer(token: str) -> tuple[bytes, bytes]:
    return b"authorization", b"Bearer " + token.encode()


def forged_tokens(ours: TokenIssuer) -> list[Attempt]:
    """Tokens that name the victim and are not to be believed, and honest ones of others that resemble the victim's."""
    other = TokenIssuer()
    victim = {"sub": VICTIM, "tenant": TENANT}
    full = ours.claims(**victim)
    mallory = ours.token(sub="mallory", tenant=TENANT)
    false = {
        "expired": ours.token(**victim, exp=LONG_AGO),
        "never expires": ours.token(**victim, exp=DROPPED),
        "not yet valid": ours.token(**victim, nbf=LATER),
        "alg none": unsigned(full, {"alg": "none", "typ": "JWT"}),
        "alg None": unsigned(full, {"alg": "None", "kid": "ec"}),
        "no signature": unsigned(full, {"alg": "ES256", "kid": "ec"}),
        "zero signature": unsigned(full, {"alg": "ES256", "kid": "ec"}, "A" * 86),
        "wrong audience": ours.token(**victim, aud="other"),
        "no audience": ours.token(**victim, aud=DROPPED),
        "wrong issuer": ours.token(**victim, iss="https://login.example.evil"),
        "no issuer": ours.token(**victim, iss=DROPPED),
        "wrong key": other.token(**victim),
        "wrong key, no kid": signed(full, other.ec_key, "ES256", {}),
        "kid of another key": signed(full, ours.ec_key, "ES256", {"kid": "rsa"}),
        "unknown kid": signed(full, other.ec_key, "ES256", {"kid": "../../dev/null"}),
        "own key inside": other.token(header={"jwk": json.loads(other.key_set())["keys"][0]}, **victim),
        "own key elsewhere": other.token(header={"jku": "http://127.0.0.1:9/keys"}, **victim),
        "public key as a secret": signed_with_secret(full, ours.public_pem(), {"kid": "rsa"}),
        "claims exchanged": with_claims(mallory, full),
        "cut off": ours.token(**victim)[:-4],
        "not a token": "victim",
    }
    attempts = [Attempt(f"token: {name}", [bearer(token)]) for name, token in false.items()]
    good = ours.token(**victim)
    attempts += [
        Attempt("token in the query", query=f"access_token={good}&token={good}&jwt={good}"),
        Attempt("token in a cookie", [(b"cookie", f"access_token={good}; token={good}".encode())]),
        Attempt("token in another header", [(b"x-authorization", b"Bearer " + good.encode())]),
        Attempt("two tokens", [bearer(mallory), bearer(ours.token(**victim, exp=LONG_AGO))]),
        Attempt("two tokens, joined", [bearer(f"{mallory}, Bearer {false['wrong key']}")]),
    ]
    beside = [_beside(one, mallory) for one in forged_headers() if "service" not in one.name]
    return attempts + beside + [Attempt(f"claim {n}", [bearer(t)]) for n, t in _honest_others(ours).items()]


def _beside(attempt: Attempt, token: str) -> Attempt:
    """The attempt of somebody who has a good token."""
    return Attempt(f"{attempt.name}, with a token", [bearer(token), *attempt.headers], attempt.fields, attempt.query)


def _honest_others(ours: TokenIssuer) -> dict[str, str]:
    """Tokens that are valid, of users who are not the victim."""
    tokens = {f"alike {one!r}": ours.token(sub=one, tenant=TENANT) for one in ALIKE}
    odd = (["ren\u00e9"], {"": "ren\u00e9"}, [], "", None, True, 0, 1.5)
    tokens |= {f"type {one!r}": ours.token(sub=one, tenant=TENANT) for one in odd}
    tenants = ("other", "acme", "ACME/EU", "acme/eu ", " acme/eu", "acme/eu\x00", "", None, [TENANT], DROPPED)
    tokens |= {f"tenant {one!r}": ours.token(sub=VICTIM, tenant=one) for one in tenants}
    shifted = [("acme", f"eu/{VICTIM}"), ("acme/eu/", VICTIM), (f"{TENANT}/{VICTIM}", ""), ("", f"{TENANT}/{VICTIM}")]
    return tokens | {f"tenant {t!r} user {u!r}": ours.token(sub=u, tenant=t) for t, u in shifted}


class Attacker:
    """Sends an attempt in every way, and collects what leaked."""

    def __init__(self, product: Product, upstream: RecordingUpstream, *, source: str = "127.0.0.1") -> None:
        self.address = ("127.0.0.1", product.ports["proxy"])
        self._upstream, self._source = upstream, source
        self.leaks: list[str] = []
        self.sent = 0

    def try_all(self, attempts: list[Attempt]) -> None:
        with ThreadPoolExecutor(20) as threads:
            for attempt in attempts:
                self._try(attempt, threads)

    def _try(self, attempt: Attempt, threads: ThreadPoolExecutor) -> None:
        """All requests of one attempt, at once: what reaches the upstream meanwhile is theirs."""
        before = len(self._upstream.received)
        requests = [(send, request) for request in requests_of(attempt) for send in (over_http1, over_http2)]
        answers = list(threads.map(lambda one: one[0](self.address, one[1], source=self._source), requests))
        self.sent += sum(answer is not None and answer.status not in (0, 400) for answer in answers)
        if any(COMBINATION in one.body for one in self._upstream.received[before:]):
            self.leaks.append(f"{attempt.name}: to the upstream")
        for (send, request), answer in zip(requests, answers, strict=True):
            if answer is not None and COMBINATION in answer.content:
                self.leaks.append(f"{attempt.name}: {request.method} {request.target:.40} {send.__name__}")


def requests_of(attempt: Attempt) -> list[RawRequest]:
    """A question, a statement that must not be learnt for the victim; reads, writes and deletions of REST and MCP."""
    query = f"?{attempt.query}" if attempt.query else ""
    headers = [*JSON, *attempt.headers]

    def chat(text: str) -> bytes:
        return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **attempt.fields}).encode()

    answers = json.dumps({"model": "m", "input": QUESTION, **attempt.fields}).encode()
    planted = json.dumps({"memories": [{"content": PLANT, "memory_type": "semantic"}]}).encode()
    tools = [
        tool_call("memory_search", {"query": QUESTION}, attempt.fields),
        tool_call("memory_save", {"content": PLANT}, attempt.fields),
        *(tool_call("memory_search", {"query": QUESTION, name: given}) for name, given in attempt.fields.items()),
    ]
    deletes = query or "?user_id=ren%C3%A9"
    return [
        RawRequest("POST", f"/v1/chat/completions{query}", headers, chat(QUESTION)),
        RawRequest("POST", f"/v1/chat/completions{query}", headers, chat(PLANT)),
        RawRequest("POST", f"/v1/responses{query}", headers, answers),
        RawRequest("POST", f"/v1/memory/search{query}", headers, json.dumps({"query": QUESTION}).encode()),
        RawRequest("GET", f"/v1/memory{query}", headers),
        RawRequest("POST", f"/v1/memory{query}", headers, planted),
        RawRequest("DELETE", f"/v1/memory{deletes}", headers),
        *(RawRequest("POST", f"{MCP}{query}", [*headers, ACCEPT], json.dumps(tool).encode()) for tool in tools),
    ]


def tool_call(name: str, arguments: dict[str, Any], extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """As an MCP client sends it; `extra` beside the arguments."""
    params = {"name": name, "arguments": arguments, **({"_meta": extra} if extra else {})}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@dataclass
class Victim:
    """Asks with an identity that is good, and so tells what is stored."""

    product: Product
    headers: Headers
    source: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        request = RawRequest(method, path, [*JSON, ACCEPT, *self.headers], content)
        answer = over_http2(("127.0.0.1", self.product.ports["proxy"]), request, source=self.source)
        assert answer is not None
        assert answer.status in (200, 201), answer
        return json.loads(answer.content)

    def asks(self, upstream: RecordingUpstream) -> bool:
        """Whether the victim's own question is answered from memory."""
        self.call("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": QUESTION}]})
        return COMBINATION in upstream.last_chat().body

    def finds(self) -> bool:
        """Whether the tool that attackers call answers the victim, so that their calls can leak at all."""
        answer = self.call("POST", MCP, tool_call("memory_search", {"query": QUESTION}))
        return COMBINATION in json.dumps(answer).encode()

    def contents(self) -> list[str]:
        self.call("POST", "/v1/memory/flush", {})
        return [memory["content"] for memory in self.call("GET", "/v1/memory")["memories"]]

    def said(self) -> list[str]:
        return [m["content"] for m in self.call("GET", "/v1/memory/messages?limit=500")["messages"]]


def test_no_attempt_leaks_and_nothing_is_learnt_for_the_victim(edge_product: Edge, upstream: RecordingUpstream) -> None:
    """By the address that attempts come from."""
    issuer = edge_product.issuer
    if edge_product.mode == "header":
        matrix = {ELSEWHERE: forged_headers(), GATEWAY: through_the_gateway()}
    else:
        matrix = {ELSEWHERE: [*forged_headers(), *forged_tokens(issuer)]}
    identified = [(name.encode(), value.encode()) for name, value in edge_product.identified(VICTIM).items()]
    victim = Victim(edge_product.product, identified, edge_product.source)
    victim.call("POST", "/v1/memory", {"memories": [{"content": SECRET, "memory_type": "semantic"}]})
    eventually(lambda: victim.asks(upstream))
    assert victim.finds()
    for source, attempts in matrix.items():
        attacker = Attacker(victim.product, upstream, source=source)
        attacker.try_all(attempts)
        assert attacker.leaks == []
        assert attacker.sent > len(attempts) * 6, "most attempts must get through to the product"
    assert victim.contents() == [SECRET]
    assert PLANT not in victim.said()
    assert victim.asks(upstream)
    if edge_product.mode == "jwt":
        for url in (edge_product.product.url, edge_product.product.api):
            assert found_by_program(url, VICTIM_ID) == (200, [SECRET])
            assert found_by_program(url, VICTIM)[0] == 403
            assert found_by_program(url, VICTIM_ID, IMPORTER + "x")[0] == 401


def found_by_program(url: str, user_id: str, token: str = IMPORTER) -> tuple[int, list[str]]:
    """Status, and the memories that a service token gets of that user."""
    headers = {"authorization": f"Bearer {token}"}
    answer = httpx.get(f"{url}/v1/memory", params={"user_id": user_id}, headers=headers, timeout=30)
    return answer.status_code, [memory["content"] for memory in answer.json().get("memories", ())]


# HTTP/1.1 written by hand, for what no client library sends; and HTTP/2 as far as a library goes

SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class RawAnswer:
    status: int
    content: bytes


@dataclass(frozen=True, slots=True)
class RawRequest:
    """`target`: path and query, as they are; `headers`: one line each, in order."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""


def over_http1(address: tuple[str, int], request: RawRequest, *, source: str = "127.0.0.1") -> RawAnswer:
    """Every byte as given. Status 0 where the connection is closed without an answer."""
    lines = [
        f"{request.method} {request.target} HTTP/1.1".encode(),
        b"Host: localhost",
        b"Connection: close",
        *(name + b": " + value for name, value in request.headers),
    ]
    if request.body:
        lines.append(b"Content-Length: %d" % len(request.body))
    received = b""
    with socket.create_connection(address, timeout=SECONDS_MAX, source_address=(source, 0)) as connection:
        connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + request.body)
        while chunk := _more(connection):
            received += chunk
    head, _, content = received.partition(b"\r\n\r\n")
    return RawAnswer(int(head.split(b" ", 2)[1]) if head else 0, content)


def over_http2(address: tuple[str, int], request: RawRequest, *, source: str = "127.0.0.1") -> RawAnswer | None:
    """None where HTTP/2 has no way to say it; status 0 where the connection is closed without an answer."""
    transport = httpx.HTTPTransport(verify=False, http1=False, http2=True, local_address=source)
    with httpx.Client(transport=transport, timeout=SECONDS_MAX, trust_env=False) as client:
        try:
            answer = client.request(
                request.method,
                f"http://{address[0]}:{address[1]}{request.target}",
                headers=[(b"host", b"localhost"), *request.headers],
                content=request.body,
            )
        except (httpx.LocalProtocolError, h2.exceptions.ProtocolError):
            return None
        except (httpx.RemoteProtocolError, httpx.NetworkError):
            return RawAnswer(0, b"")
    return RawAnswer(answer.status_code, answer.content)


def _more(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""
