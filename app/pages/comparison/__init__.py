"""The page that compares two models in one space, and a module for each of its parts."""
