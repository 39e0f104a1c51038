"""What is on disk, read with numpy alone."""

from precompute.index.index import Index

__all__ = ["Index"]
