"""Rights in shared projects, and the owner ids that no user can have."""

from __future__ import annotations

import random
import sys
from itertools import product

import pytest

from memory.errors import BadInput
from memory.model import Evidence, Memory, Scope, is_valid_id
from memory.model.identity import is_project_owner, is_valid_owner
from memory.model.memories import MemoryVisibility
from memory.model.projects import (
    ProjectAccess,
    ProjectMember,
    ProjectRole,
    SharedMemory,
    SharedProject,
    Tenancy,
    as_seen_by,
    project_key,
    project_key_of,
    row_of,
    shared_id,
    successor_of,
)
from memory.model.token_claims import user_of_tenant

PROJECT = SharedProject("0f" * 16, "", "apollo", 0.0)
OWNER, ADMIN, EDITOR, VIEWER = ProjectRole.OWNER, ProjectRole.ADMIN, ProjectRole.EDITOR, ProjectRole.VIEWER
ROLES = (None, VIEWER, EDITOR, ADMIN, OWNER)


def memory_of(visibility: MemoryVisibility) -> SharedMemory:
    return SharedMemory("m", PROJECT.key, "ann", visibility, 0.0)


def hostile_ids(count: int) -> list[str]:
    """What somebody would try who knows how owner ids look: white space and format characters around and inside one."""
    chance = random.Random(35)
    spaces = [*filter(str.isspace, map(chr, range(sys.maxunicode))), *"\u200b\u2060\ufeff\x00\u180e"]
    words = "project/ PROJECT/ project%2F .. / %20 ann pro ject".split()
    parts = [*spaces, *20 * (" project/",), *words, PROJECT.key]
    return [PROJECT.owner_id, *("".join(chance.choices(parts, k=chance.randint(1, 6))) for _ in range(count))]


def test_no_id_of_a_user_is_that_of_a_project() -> None:
    tried = hostile_ids(100_000)
    valid = [one for one in tried if is_valid_id(one)]
    assert len(valid) > 1_000
    assert sum(map(is_project_owner, tried)) > 10
    assert not any(is_project_owner(one) for one in valid)
    for one in filter(is_project_owner, tried):
        with pytest.raises(BadInput):
            Scope(one)


def test_a_project_owns_memories_and_nothing_else_with_white_space_does() -> None:
    Memory("m", PROJECT.owner_id, "We deploy on Fridays", 0.0, 0.0, 0.0)
    for owner in (" ann", " project/", " project/ x", "  project/x", " project/x\n", " project/" + "x" * 256, ""):
        assert not is_valid_owner(owner)
        with pytest.raises(BadInput):
            Memory("m", owner, "We deploy on Fridays", 0.0, 0.0, 0.0)


def test_the_id_of_a_shared_memory_names_its_project_and_other_ids_name_none() -> None:
    keys = {project_key(unique) for unique in ("a", "b", "")}
    assert len(keys) == 3
    for key in keys:
        assert project_key_of(shared_id(key, "x.y")) == key
        for other in (key, f"{key}x.y", f"{key[1:]}.y", f"{key.upper()}.y", f".{key}", ""):
            assert project_key_of(other) == ""
    assert project_key_of("3758fb6b-839b-43c9-bfe7-289446ba0a15") == ""


def test_who_reads_and_who_changes_what() -> None:
    shared = (MemoryVisibility.PUBLIC, MemoryVisibility.MEMBERS)
    read, changed = set(), set()
    for role, visibility, user in product(ROLES, MemoryVisibility, ("ann", "bob")):
        if memory_of(visibility).may_be_read(user, role):
            read.add((role, visibility, user))
        if memory_of(visibility).may_be_changed(user, ProjectAccess(PROJECT, role)):
            changed.add((role, visibility, user))
    private = set(product(ROLES, (MemoryVisibility.OWNER_ONLY,), ("ann",)))  # whatever the author's role is
    public = set(product((None,), (MemoryVisibility.PUBLIC,), ("ann", "bob")))
    assert read == private | public | set(product(ROLES[1:], shared, ("ann", "bob")))
    own = set(product((EDITOR, ADMIN, OWNER), shared, ("ann",)))
    assert changed == private | own | set(product((ADMIN, OWNER), shared, ("bob",)))


def test_who_gives_and_takes_which_role() -> None:
    changes = product(ROLES, ROLES, ROLES)
    allowed = {(actor, *change) for actor, *change in changes if ProjectAccess(PROJECT, actor).may_set(*change)}
    by_admin, by_owner = product((ADMIN,), *[ROLES[:3]] * 2), product((OWNER,), *[ROLES[:4]] * 2)
    assert allowed == {*by_admin, *by_owner}, "who is below them"


def test_the_most_powerful_and_then_the_oldest_member_succeeds() -> None:
    given = (("ann", OWNER), ("bob", VIEWER), ("dan", ADMIN), ("cid", ADMIN))
    members = [ProjectMember(name, role, float(at)) for at, (name, role) in enumerate(given)]
    for count, successor in ((4, members[2]), (2, members[1]), (1, None)):
        assert successor_of("ann", members[:count]) == successor
    assert successor_of("ann", members[::-1]) == members[2]


def test_names_of_users_stay_within_their_tenant() -> None:
    tenancy = Tenancy(has_tenants=True)
    ann = user_of_tenant("ac/me", "ann")
    for name in ("bob", "a/b", "50%", "%2F", "%25", "beta/bob", "%252F"):
        user_id = tenancy.user_named(name, by=ann)
        assert user_id == user_of_tenant("ac/me", name)
        assert tenancy.tenant_of(user_id) == tenancy.tenant_of(ann) == "ac%2Fme"
        assert tenancy.name_of(user_id) == name
    assert tenancy.tenant_of("ann") is None
    assert Tenancy().tenant_of("beta/bob") == ""
    assert Tenancy().user_named("beta/bob", by="ann") == Tenancy().name_of("beta/bob") == "beta/bob"


def test_only_the_author_sees_the_words_that_a_shared_memory_stands_on() -> None:
    own = Memory(
        *("m", "ann", "We deploy on Fridays", 0.0, 0.0, 0.0),
        project_id="apollo",
        session_id="s",
        evidence=(Evidence("I hate that we deploy on Fridays", "t1"),),
        metadata={"withdrawn": {"evidence": "private"}, "tag": "x"},
    )
    entry = memory_of(MemoryVisibility.MEMBERS)
    row = row_of(own, entry, PROJECT)
    assert (row.user_id, row.project_id, row.session_id) == (PROJECT.owner_id, "members", "")
    mine, theirs = (as_seen_by(user, row, entry, "apollo") for user in ("ann", "bob"))
    assert (mine.user_id, mine.project_id, mine.evidence) == ("ann", "apollo", own.evidence)
    assert (theirs.user_id, theirs.evidence, dict(theirs.metadata)) == ("ann", (), {"tag": "x"})
