"""What the site and the worker both put around their FastAPI apps."""
