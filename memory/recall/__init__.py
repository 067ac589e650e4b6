"""The request path: decide whether to search, search, rank and inject, within a deadline. Recall never fails a
request.
"""
