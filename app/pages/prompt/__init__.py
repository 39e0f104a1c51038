"""The page that shows a run of the model on a text, read as words, and a module for each of its panels (parts of the
result)."""
