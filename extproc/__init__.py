"""The data plane: everything that knows Envoy. It decides with `memory` and never the other way round."""
