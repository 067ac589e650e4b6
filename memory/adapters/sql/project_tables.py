"""The tables of shared projects: their members, and the entries of their memories, by which access is decided."""

from __future__ import annotations

PROJECT_TABLES = (
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
