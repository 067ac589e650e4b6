"""Skins over `memory.service.library`: REST now, MCP and pages later. They hold no logic of their own."""
