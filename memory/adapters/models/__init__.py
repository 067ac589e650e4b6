"""Models behind ports: on ONNX Runtime in this process, or on a server that speaks OpenAI's API."""
