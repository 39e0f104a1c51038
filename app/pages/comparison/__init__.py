"""Two models in one space."""
