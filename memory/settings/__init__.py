"""All settings with their types, defaults, limits and meaning.

Declarations and their catalogue only; `memory/settings/loader.py` reads file, environment and flags.
"""

from __future__ import annotations

from memory.settings.catalogue import SettingDoc
from memory.settings.identity import IdentitySettings, JwtSettings, ServiceTokenSettings
from memory.settings.learning import ExternalModel, ModelEndpoint, SecretSettings
from memory.settings.storage import EmbeddingSettings, NoteSettings, ReceiptSettings, WorkingSetSettings
from memory.settings.switches import OffRoute, UpstreamSignal
from memory.settings.tree import MemorySettings, Settings, every_setting
