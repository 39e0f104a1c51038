"""Show the lab: the paper's measurements of one model."""
