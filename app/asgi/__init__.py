"""Code that the site and the worker share: the middleware around their FastAPI apps, and the sockets that both open."""
