"""The memory store on Milvus: Milvus Lite as a server process, or a real server."""
