"""Define what can be asked of a model and what it answers, as JSON over HTTP. Tokens are ids, because their texts are
in the index. Nothing here needs torch, so that the server can import it."""
