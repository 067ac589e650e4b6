"""The implementation of `memproxy up`: processes, probes, ports and locks, Envoy's bootstrap, the local model."""
