"""The tables of shared projects: their members, and the entries of their memories, by which access is decided."""

from __future__ import annotations

PROJECT_TABLES = (
    # `tenant`: the project's own key where there are no tenants: an id is unique within a tenant, and to each member.
    """
    CREATE TABLE projects (
        key TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        project_id TEXT NOT NULL,
        created_at REAL NOT NULL,
        UNIQUE (tenant, project_id)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE project_members (
        project_key TEXT NOT NULL,
        user_id TEXT NOT NULL,
        role TEXT NOT NULL,
        joined_at REAL NOT NULL,
        PRIMARY KEY (project_key, user_id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX project_members_by_user ON project_members (user_id)",
    # Whose notes may hold memories of a project.
    """
    CREATE TABLE project_readers (
        project_key TEXT NOT NULL,
        user_id TEXT NOT NULL,
        PRIMARY KEY (project_key, user_id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX project_readers_by_user ON project_readers (user_id)",
    """
    CREATE TABLE project_memories (
        memory_id TEXT PRIMARY KEY,
        project_key TEXT NOT NULL,
        author_id TEXT NOT NULL,
        visibility TEXT NOT NULL,
        changed_at REAL NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX project_memories_by_project ON project_memories (project_key)",
    "CREATE INDEX project_memories_by_author ON project_memories (author_id)",
)
# Files of earlier releases have no such tables. Their members have joined, and none of them is known to have chosen to.
INVITATION_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS project_invitations (
        project_key TEXT NOT NULL,
        user_id TEXT NOT NULL,
        role TEXT NOT NULL,
        invited_by TEXT NOT NULL,
        invited_at REAL NOT NULL,
        PRIMARY KEY (project_key, user_id)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX IF NOT EXISTS project_invitations_by_user ON project_invitations (user_id, invited_at)",
    "CREATE INDEX IF NOT EXISTS project_invitations_by_sender ON project_invitations (invited_by, user_id)",
    # Memberships that the user created or accepted.
    """
    CREATE TABLE IF NOT EXISTS project_choices (
        user_id TEXT NOT NULL,
        project_key TEXT NOT NULL,
        PRIMARY KEY (user_id, project_key)
    ) WITHOUT ROWID
    """,
)
