from memory.adapters.sql.sqlite_database import SqliteDatabase as SqlDatabase, CALL_SECONDS_MAX
