"""The data plane: everything that knows Envoy. It uses `memory`, never the other way round."""
