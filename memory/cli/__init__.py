"""The memory commands of `memproxy`: they read settings, call the layers below, and print."""
