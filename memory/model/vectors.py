"""The origin of vectors: only vectors of one origin can be compared."""

from __future__ import annotations

from dataclasses import dataclass

FINGERPRINT_CHARACTERS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class VectorOrigin:
    """The embedding model of a collection's vectors, and the prefix of each memory.

    `fingerprint`: a hash of the model's weights, "" for a model behind a server. The prefix of questions is not
    included, since questions are not stored.
    """

    model: str
    dimension: int
    fingerprint: str = ""
    document_prefix: str = ""
    document_input_type: str = ""

    def agrees_with(self, other: VectorOrigin) -> bool:
        """Whether vectors of both may be mixed. Model names count only if a fingerprint is missing."""
        if self._given != other._given:
            return False
        if self.fingerprint and other.fingerprint:
            return self.fingerprint == other.fingerprint
        return bool(self.model) and self.model == other.model

    @property
    def _given(self) -> tuple[int, str, str]:
        return self.dimension, self.document_prefix, self.document_input_type

    def __str__(self) -> str:
        more = [f"{self.dimension} numbers"]
        if self.fingerprint:
            more.append(f"fingerprint {self.fingerprint[:FINGERPRINT_CHARACTERS_SHOWN]}")
        if self.document_prefix:
            more.append(f"document_prefix {self.document_prefix!r}")
        if self.document_input_type:
            more.append(f"document_input_type {self.document_input_type!r}")
        return f"{self.model or 'a model that nobody wrote down'} ({', '.join(more)})"
