"""What can be asked of a model and what it answers, as JSON over HTTP. Tokens are ids: texts are the index's.
Needs no torch, so that the server can import it.
"""
