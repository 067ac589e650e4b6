"""`memproxy projects`: shared projects, their members and their memories. Calls the REST API, which enforces roles."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from typer import Argument, BadParameter, Option, confirm, echo

from memory.cli.options import PAGE_MEMORIES, ApiOptions, YesOption, command, group
from memory.cli.output import print_json, print_memories, print_result, print_rows, print_table

PATH = "/v1/memory/projects"
INVITATIONS = "/v1/memory/invitations"

RoleName: TypeAlias = Literal["viewer", "editor", "admin"]  # that can be given; a project has one owner besides
ProjectArgument: TypeAlias = Annotated[str, Argument(help="Its id, as `list` shows it.")]
InvitationArgument: TypeAlias = Annotated[str, Argument(help="Its id, as `invitations` shows it.")]
MemberArgument: TypeAlias = Annotated[str, Argument(help="Their user id.")]


projects = group("Shared projects: list them, show one with its members and memories, invite members.")


@command(projects, "list")
def list_projects(options: ApiOptions) -> None:
    """Show the shared projects of which the user is a member."""
    _show_projects(options.asked("GET", PATH)["projects"], options)


@command(projects)
def show(project: ProjectArgument, options: ApiOptions) -> None:
    """Show a project with its members and who is invited, who came first first."""
    found = options.asked("GET", _path(project))
    found |= options.asked("GET", _path(project, "members"))
    if options.as_json:
        print_json(found)
        return
    echo(f"{found['project_id']}, since {found['created_at']}; {options.user} is its {found['role']}\n")
    rows = [(member["user_id"], member["role"], member["joined_at"]) for member in found["members"]]
    rows += [(one["user_id"], one["role"], f"invited at {one['invited_at']}") for one in found["invited"]]
    print_table(["member", "role", "joined at"], rows)


@command(projects)
def memories(
    project: ProjectArgument,
    options: ApiOptions,
    *,
    limit: Annotated[int, Option(min=1, help="Most to show.")] = PAGE_MEMORIES,
) -> None:
    """Show the project's memories that the user may read, newest first."""
    from memory.cli.api_client import listed_memories

    with options.client() as client:
        found = listed_memories(client, _path(project, "memories"), {}, limit=limit)
    print_memories(found, as_json=options.as_json)


@command(projects)
def create(project: ProjectArgument, options: ApiOptions) -> None:
    """Create a project, which the user owns. What users stored under this id before stays private to each."""
    _show_projects([options.asked("POST", PATH, {"project_id": project})], options)


@command(projects)
def delete(project: ProjectArgument, options: ApiOptions, *, yes: YesOption = False) -> None:
    """Delete a project with all memories in it, whoever wrote them. For its owner."""
    if not yes:
        confirm(f"Delete the project {project!r} with all of its memories for good?", abort=True, err=True)
    _show_count(options.asked("DELETE", _path(project)), options)


@command(projects)
def add(
    project: ProjectArgument,
    member: MemberArgument,
    options: ApiOptions,
    *,
    role: Annotated[RoleName, Option(help="What they may do.")] = "viewer",
) -> None:
    """Invite somebody, or change a member's role. For owner and admins; only the owner makes admins."""
    made = options.asked("PUT", _path(project, "members", member), {"role": role})
    state = "" if made["joined_at"] else "invited as "
    print_result(made, f"{made['user_id']}: {state}{made['role']}", as_json=options.as_json)


@command(projects)
def remove(project: ProjectArgument, member: MemberArgument, options: ApiOptions, *, yes: YesOption = False) -> None:
    """Remove a member, withdraw an invitation, or leave the project. What they shared stays."""
    if not yes:
        confirm(f"Remove {member!r} from the project {project!r}?", abort=True, err=True)
    _show_count(options.asked("DELETE", _path(project, "members", member)), options)


@command(projects)
def transfer(project: ProjectArgument, member: MemberArgument, options: ApiOptions, *, yes: YesOption = False) -> None:
    """Make another member the owner, and the user an admin. For the owner."""
    if not yes:
        confirm(f"Make {member!r} the owner of the project {project!r}?", abort=True, err=True)
    _show_projects([options.asked("POST", _path(project, "owner"), {"user_id": member})], options)


@command(projects)
def invitations(options: ApiOptions) -> None:
    """Show the invitations that the user has not answered, latest first."""
    found = options.asked("GET", INVITATIONS)
    shown = ("id", "project_id", "role", "invited_by", "invited_at")
    rows = [[one[field] for field in shown] for one in found["invitations"]]
    print_rows(found, ["id", "project", "role", "invited by", "invited at"], rows, as_json=options.as_json)


@command(projects)
def accept(invitation: InvitationArgument, options: ApiOptions) -> None:
    """Accept an invitation: the user becomes a member of that project."""
    _show_projects([options.asked("POST", f"{_path(invitation, base=INVITATIONS)}/accept")], options)


@command(projects)
def decline(invitation: InvitationArgument, options: ApiOptions) -> None:
    """Decline an invitation."""
    _show_count(options.asked("DELETE", _path(invitation, base=INVITATIONS)), options)


def _path(*parts: str, base: str = PATH) -> str:
    from memory.cli.api_client import quoted

    if "" in parts:
        raise BadParameter("an id must not be empty")
    return "/".join((base, *map(quoted, parts)))


def _show_projects(found: list[dict[str, Any]], options: ApiOptions) -> None:
    rows = [(one["project_id"], one["role"], one["created_at"]) for one in found]
    print_rows({"projects": found}, ["project", "role", "created at"], rows, as_json=options.as_json)


def _show_count(answer: dict[str, Any], options: ApiOptions) -> None:
    print_result(answer, f"deleted: {answer['deleted']}", as_json=options.as_json)
