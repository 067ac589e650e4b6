"""What stands behind `memproxy up`: processes, probes, ports and locks, Envoy's bootstrap, the local model."""
