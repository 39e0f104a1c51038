"""What the site and the worker both put around their FastAPI apps, and how both listen."""
