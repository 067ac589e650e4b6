"""Operations on memories, for all callers: the library, erasure, and writes under the user's lock."""
