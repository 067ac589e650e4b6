"""The real parts behind the ports: one module for each library or protocol, errors translated at its edge."""
