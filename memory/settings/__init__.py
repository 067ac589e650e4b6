"""All settings with their types, defaults, limits and meaning.

Declarations and their catalogue only; `memory/settings/loader.py` reads file, environment and flags.
"""

from __future__ import annotations

from memory.settings.bounds import NoteSettings, ReceiptSettings, SnapshotSettings, WorkingSetSettings
from memory.settings.catalogue import ENVIRONMENT_PREFIX, Leaf, SettingDoc, is_section, leaves_of, without_secrets
from memory.settings.compaction import CompactionSettings
from memory.settings.extraction import ExtractionSettings
from memory.settings.identity import IdentitySettings, JwtSettings, ServiceTokenSettings
from memory.settings.learning import LearnSettings
from memory.settings.models import ExternalModel, ModelEndpoint
from memory.settings.profiles import ProfileSettings
from memory.settings.recall import UpstreamSignal
from memory.settings.retention import CategoryRetention, RetentionSettings
from memory.settings.secrets import SecretSettings
from memory.settings.storage import DatabaseSettings, EmbeddingSettings, MilvusSettings, TurnLogSettings
from memory.settings.switches import HoldoutSettings, OffRoute, ShadowSettings
from memory.settings.tree import MemorySettings, Settings, every_setting

__all__ = [
    "ENVIRONMENT_PREFIX",
    "CategoryRetention",
    "CompactionSettings",
    "DatabaseSettings",
    "EmbeddingSettings",
    "ExternalModel",
    "ExtractionSettings",
    "HoldoutSettings",
    "IdentitySettings",
    "JwtSettings",
    "Leaf",
    "LearnSettings",
    "MemorySettings",
    "MilvusSettings",
    "ModelEndpoint",
    "NoteSettings",
    "OffRoute",
    "ProfileSettings",
    "ReceiptSettings",
    "RetentionSettings",
    "SecretSettings",
    "ServiceTokenSettings",
    "SettingDoc",
    "Settings",
    "ShadowSettings",
    "SnapshotSettings",
    "TurnLogSettings",
    "UpstreamSignal",
    "WorkingSetSettings",
    "every_setting",
    "is_section",
    "leaves_of",
    "without_secrets",
]
