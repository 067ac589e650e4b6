"""The memory commands of `memproxy`. They read settings, call the layers below, and print."""
