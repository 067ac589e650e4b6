"""Long-term memory for chats: recall in the request, learning after the reply. Knows nothing of Envoy."""
