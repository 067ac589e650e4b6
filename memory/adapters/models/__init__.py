"""Models behind ports: on ONNX Runtime in this process, or on a server with OpenAI's API."""
