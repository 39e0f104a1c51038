"""The server's side of live workers: start a worker or find its address, and send it requests."""
