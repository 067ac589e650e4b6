"""What operators may call, and that no text of a user is in it; who is calling; a user's own list of receipts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest
from api_parts import ANN, BOB, SECRET, add_one, api_of, assert_refused, claims, kept, service_token, with_token
from library_parts import NOW, Parts, report

from memory.api.callers import CallerRules
from memory.errors import Unavailable
from memory.model import CandidateVerdict, CarriedNote, Memory, Message, RecallStatus, Receipt, ReceiptCandidate, Scope
from memory.model.token_claims import ClaimNames
from memory.ports import MemoryFilter

OPERATOR, PROGRAM = "mpt_operator-0123456789", "mpt_program-0123456789"
RULES = CallerRules(
    ClaimNames(tenant="tenant"),
    (service_token("operator", OPERATOR, "operate"), service_token("program", PROGRAM, "read", "write")),
)
BASE = "/v1/memory/operator"
SHOWN = [f"{BASE}/{name}" for name in ("requests", "queue", "dead-letters", "health", "reports", "erasures")]
CALLS: list[tuple[str, str, Any]] = [
    *(("GET", path, None) for path in SHOWN),
    ("POST", f"{BASE}/dead-letters/replay", {"ids": ["w"]}),
    ("POST", f"{BASE}/dead-letters/drop", {"ids": ["w"]}),
    ("POST", f"{BASE}/erasures", {"user_id": "zoe"}),
]
PARTS = ("store", "turn_log", "embedder", "learning")
MARKER = "zanzibar"  # in every text of the user


async def filled(parts: Parts) -> None:
    """A memory, a receipt and two dead letters of ann, each with texts of hers."""
    await parts.put(Memory("m1", "ann", f"I like {MARKER}", NOW, NOW, NOW))
    verdicts = (CandidateVerdict.INJECTED, CandidateVerdict.IRRELEVANT, CandidateVerdict.IRRELEVANT)
    candidates = tuple(ReceiptCandidate(f"m{n}", 0.5, {}, verdict) for n, verdict in enumerate(verdicts))
    receipt = Receipt("r1", "ann", NOW, RecallStatus.USED, "found", {"topic": MARKER}, f"where is {MARKER}?")
    notes = (CarriedNote(None, ("m1",), 9, is_new=True),)
    await kept(parts, replace(receipt, candidates=candidates, notes=notes, timings_ms={"embed": 3.5}))
    for session in ("s1", "s2"):
        await parts.library.append_turn(Scope("ann", session_id=session), [Message("user", f"I live in {MARKER}")])
        lease = await parts.lease()
        assert lease is not None
        await parts.turn_log.move_to_dead_letters(lease, now=NOW, reason="no answer")


@pytest.mark.parametrize("mode", ["header", "jwt"])
async def test_only_a_token_with_the_scope_operate_is_admitted(parts: Parts, mode: str) -> None:
    edge = claims(sub="ann") if mode == "jwt" else ANN | {"x-memory-edge-secret": SECRET}
    two = [*with_token(OPERATOR).items(), *with_token(PROGRAM).items()]
    async with api_of(parts, identity_mode=mode, rules=RULES) as api:
        for method, path, body in CALLS:
            assert (await api.request(method, path, json=body, headers=with_token(OPERATOR))).is_success
            for headers in ({}, edge, with_token(PROGRAM)):
                assert_refused(await api.request(method, path, json=body, headers=headers), 403, "operate")
            for unknown in (with_token("mpt_guess"), two):
                assert_refused(await api.request(method, path, json=body, headers=unknown), 401)
        assert_refused(await api.get("/v1/memory?user_id=ann", headers=with_token(OPERATOR)), 403, "no scope read")


async def test_operators_see_ids_states_and_times_and_no_text_of_a_user(parts: Parts) -> None:
    await filled(parts)
    async with api_of(parts) as api:
        answers = {path: await api.get(path) for path in SHOWN}
    assert [one.status_code for one in answers.values()] == [200] * 6
    assert not [path for path, answer in answers.items() if MARKER in answer.text]
    requests, queue, letters, health, reports, erasures = (answer.json() for answer in answers.values())
    assert reports == {"reports": [], "next_cursor": None}
    assert erasures == {"erasures": []}
    one = {"receipt_id": "r1", "user_id": "ann", "created_at": "2025-06-15T15:06:40Z", "status": "used"}
    one |= {"reason": "found", "memories": 1, "tokens": 9, "timings_ms": {"embed": 3.5}}
    one |= {"verdicts": {"injected": 1, "irrelevant": 2}}
    assert requests == {"requests": [one], "next_cursor": None}
    assert (queue["dead"], queue["due"], queue["shed"]) == (2, 0, 0)
    shown = [(one["user_id"], one["turns"], one["reason"]) for one in letters["dead_letters"]]
    assert shown == [("ann", 1, "no answer")] * 2
    assert {one["part"]: one["ok"] for one in health["parts"]} == dict.fromkeys(PARTS, True)


@pytest.mark.parametrize(("call", "done", "retrying"), [("replay", "replayed", 1), ("drop", "dropped", 0)])
async def test_named_dead_letters_are_replayed_or_dropped(parts: Parts, call: str, done: str, retrying: int) -> None:
    await filled(parts)
    path = "/v1/memory/operator/dead-letters"
    async with api_of(parts) as api:
        first, second = (await api.get(path)).json()["dead_letters"]
        for body in ({"ids": []}, {}, {"id": first["id"]}):
            assert_refused(await api.post(f"{path}/{call}", json=body), 400)
        assert (await api.post(f"{path}/{call}", json={"ids": [second["id"], "no such"]})).json() == {done: 1}
        assert [one["id"] for one in (await api.get(path)).json()["dead_letters"]] == [first["id"]]
        queue = (await api.get("/v1/memory/operator/queue")).json()
        assert (queue["retrying"], queue["dead"]) == (retrying, 1)
        assert (await api.post(f"{path}/replay", json={"ids": [second["id"]]})).json() == {"replayed": 0}
    assert len([turn async for turn in parts.turn_log.turns("ann")]) == 2


async def test_an_operator_erases_the_named_user_alone_and_follows_the_erasure(parts: Parts) -> None:
    await filled(parts)
    await parts.put(Memory("m2", "bob", "I like tea", NOW, NOW, NOW))
    path, operator = "/v1/memory/operator/erasures", with_token(OPERATOR)
    async with api_of(parts, identity_mode="header", rules=RULES, headers=operator) as api:
        erasure = (await api.post(path, json={"user_id": "ann"})).json()
        assert (erasure["state"], erasure["deleted"]) == ("deleted", {"memories": 1, "turns_withdrawn": 0})
        assert [await parts.store.count(MemoryFilter(user, status=None)) for user in ("bob", "ann")] == [1, 0]
        await parts.erasures.rewritten(await parts.erasures.pending(), at=NOW + 5)
        one = f"{path}/{erasure['erasure_id']}"
        found = (await api.get(one, params={"user_id": "ann"})).json()
        assert (found["state"], found["rewritten_at"]) == ("rewritten", "2025-06-15T15:06:45Z")
        assert (await api.get(path)).json() == {"erasures": [found]}
        assert_refused(await api.get(one, params={"user_id": "bob"}), 404)
        assert_refused(await api.get(one), 400)
        for body in ({}, {"user_id": ""}, {"user_id": " ann"}, {"user_id": "ann", "project_id": "red"}):
            assert_refused(await api.post(path, json=body), 400)


async def test_reports_are_listed_newest_first_and_shown_whole(parts: Parts) -> None:
    for number in range(3):
        await parts.reports.keep(report(f"recall-{number}", at=NOW + number, rows=(("all", f"0.{number}"),)))
    async with api_of(parts) as api:
        first = (await api.get("/v1/memory/operator/reports?limit=2")).json()
        assert [one["name"] for one in first["reports"]] == ["recall-2", "recall-1"]
        rest = (await api.get("/v1/memory/operator/reports", params={"cursor": first["next_cursor"]})).json()
        assert ([one["name"] for one in rest["reports"]], rest["next_cursor"]) == (["recall-0"], None)
        made = {"evaluation": "recall", "file": "facts.jsonl", "version": "9.9.9"}
        assert (await api.get("/v1/memory/operator/reports/recall-1")).json() == {
            "report": {"name": "recall-1", "created_at": "2025-06-15T15:06:41Z", **made},
            "tables": [{"columns": ["group", "recall"], "rows": [["all", "0.1"]]}],
        }
        assert_refused(await api.get("/v1/memory/operator/reports/recall-9"), 404)
        for name in ("..%2Fturns", ".hidden", "a%00b", "x" * 101):
            assert (await api.get(f"/v1/memory/operator/reports/{name}")).status_code in (400, 404)
        assert_refused(await api.get("/v1/memory/operator/reports?cursor=none"), 400)


async def test_health_names_the_part_that_does_not_work(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*_: Any, **__: Any) -> None:
        raise Unavailable("embedder", "it is down")

    monkeypatch.setattr(parts.embedder, "embed", failing)
    await parts.library.append_turn(Scope("ann", session_id="s1"), [Message("user", "hello")])
    parts.now += 3_600
    async with api_of(parts) as api:
        found = (await api.get("/v1/memory/operator/health")).json()["parts"]
    reasons = {"store": None, "turn_log": None, "embedder": "unavailable", "learning": "late"}
    assert [(one["part"], one["reason"]) for one in found] == [*reasons.items()]


async def test_users_list_their_own_receipts_by_memory_or_what_was_asked(api: httpx.AsyncClient, parts: Parts) -> None:
    await filled(parts)
    times = {"id": "r1", "created_at": "2025-06-15T15:06:40Z", "status": "used", "reason": "found", "tokens": 9}
    expected = times | {"query": f"where is {MARKER}?", "injected": ["m1"], "outcome": {}}
    path, outcome = "/v1/memory/receipts", {"kept": 1, "refused": {"secret": 1}}
    for asked in (path, f"{path}?memory_id=m1"):
        assert (await api.get(asked)).json() == {"receipts": [expected], "next_cursor": None}
    assert (await api.get(f"{path}?asked=true")).json() == {"receipts": [], "next_cursor": None}
    await parts.receipts.amend("ann", "r1", outcome)
    found = (await api.get(f"{path}?asked=true")).json()["receipts"]
    assert [(one["id"], one["outcome"]) for one in found] == [("r1", outcome)]
    for query in ("", "?asked=true"):
        assert (await api.get(path + query, headers=BOB)).json()["receipts"] == []
    for query in ("?memory_id=m2", "?asked=true&memory_id=m2"):
        assert (await api.get(path + query)).json()["receipts"] == []
    assert_refused(await api.get(f"{path}?cursor=x"), 400, "next_cursor")
    assert_refused(await api.get(f"{path}?asked=maybe"), 400, "asked")


async def test_callers_learn_the_id_by_which_they_call_themselves(parts: Parts, api: httpx.AsyncClient) -> None:
    alone = {"user_id": "ann", "shown_as": "ann", "projects": None}
    assert (await api.get("/v1/memory/caller")).json() == alone
    async with api_of(parts, identity_mode="jwt", rules=RULES) as verified:
        assert_refused(await verified.get("/v1/memory/caller"), 401)
        verified.headers.update(claims(sub="ann"))
        found = (await verified.get("/v1/memory/caller")).json()
        assert found == alone | {"shown_as": "acme/ann"}  # calls that name the user take the id without the tenant
        memory_id = await add_one(verified)
        assert (await verified.get(f"/v1/memory/{memory_id}")).json()["user_id"] == found["shown_as"]
        assert (await verified.delete("/v1/memory", params={"user_id": found["user_id"]})).status_code == 200
