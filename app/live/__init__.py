"""The server's side of the live worker: finding one, asking it, and what may go wrong."""
