"""Whose memories a verified token opens: each claim as it stands, or nobody."""

from __future__ import annotations

import base64
import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.model import is_valid_id
from memory.model.token_claims import (
    CLAIMS_BYTES_MAX,
    ClaimNames,
    ClaimProblem,
    VerifiedUser,
    project_within,
    user_of_tenant,
    verified_user,
)

ALL = ClaimNames("sub", "tenant", "projects")


def payload(padding: bytes = b"", **claims: Any) -> bytes:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=") + padding


def test_the_user_claim_is_the_user() -> None:
    assert verified_user(payload(sub="ada"), ClaimNames()) == VerifiedUser("ada", "ada")
    assert verified_user(payload(b"==", sub="rené ☂"), ClaimNames()) == VerifiedUser("rené ☂", "rené ☂")
    assert verified_user(payload(email="a@b", sub="ada"), ClaimNames("email")) == VerifiedUser("a@b", "a@b")


def test_a_claim_is_found_by_its_whole_name_or_else_by_its_path() -> None:
    nested = payload(a={"b": {"c": "deep"}})
    assert verified_user(nested, ClaimNames("a.b.c")) == VerifiedUser("deep", "deep")
    url = payload(**{"https://x.example/user": "u", "https://x": {"example/user": "other"}})
    assert verified_user(url, ClaimNames("https://x.example/user")) == VerifiedUser("u", "u")
    for path in ("a.b", "a.b.c.d", "a.x", "x.b", "a.", ".a", ""):
        assert verified_user(nested, ClaimNames(path)) is ClaimProblem.USER


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        *(
            (payload(sub=sub, tenant="t", projects="red"), ClaimProblem.USER)
            for sub in ("", " ada", "ada ", "a\nb", "a\0", "a\u200b", "x" * 257, 7, 1.5, True, None, ["ada"], {})
        ),
        *(
            (payload(sub="ada", tenant=tenant, projects="red"), ClaimProblem.TENANT)
            for tenant in (None, "", " acme", ["acme"], 7, "x" * 257)
        ),
        (payload(sub="ada", projects="red"), ClaimProblem.TENANT),
        *(
            (payload(sub="ada", tenant="t", projects=claim), ClaimProblem.PROJECT)  # and not all of them
            for claim in (None, "", [], ["red", ""], ["red", 7], " red", {"red": 1}, 7)
        ),
        *(
            (garbled, ClaimProblem.UNREADABLE)
            for garbled in (b"", b"=", b"!", b"e30x=", b"\xff", b"W10", b"bnVsbA", b"eyJzdWIiOiJcdWQ4MDAifQ")
        ),
        (b"e" * (CLAIMS_BYTES_MAX + 1), ClaimProblem.UNREADABLE),
    ],
)
def test_a_claim_that_is_none_identifies_nobody(given: bytes, problem: ClaimProblem) -> None:
    assert verified_user(given, ALL) is problem


def test_a_tenant_is_part_of_the_user() -> None:
    names = ClaimNames(tenant="tenant")
    assert verified_user(payload(sub="ada", tenant="acme"), names) == VerifiedUser("acme/ada", "ada")
    assert verified_user(payload(sub="a/b%", tenant="x/y"), names) == VerifiedUser("x%2Fy/a%2Fb%25", "a/b%")


def test_no_two_users_of_tenants_are_one() -> None:
    parts = ["".join(one) for size in range(4) for one in product("a/%25F", repeat=size)]
    pairs = list(product(parts, parts))
    assert len({user_of_tenant(*pair) for pair in pairs}) == len(pairs)


def test_projects_are_one_or_a_list() -> None:
    for claim, projects in (("red", ("red",)), (["red"], ("red",)), (["red", "blue"], ("red", "blue"))):
        found = verified_user(payload(sub="ada", tenant="t", projects=claim), ALL)
        assert found == VerifiedUser("t/ada", "ada", projects)


@pytest.mark.parametrize(
    ("projects", "named", "used"),
    [
        (None, "", ""),
        (None, "any", "any"),
        (("red",), "", "red"),
        (("red",), "red", "red"),
        (("red",), "blue", None),
        (("red", "blue"), "blue", "blue"),
        (("red", "blue"), "", None),
        (("red", "blue"), "Red", None),
    ],
)
def test_a_request_stays_within_the_projects(projects: tuple[str, ...] | None, named: str, used: str | None) -> None:
    assert project_within(projects, named) == used


@given(st.binary(max_size=200))
def test_whatever_comes_it_never_raises(garbled: bytes) -> None:
    found = verified_user(garbled, ALL)
    assert isinstance(found, ClaimProblem) or is_valid_id(found.user_id)
