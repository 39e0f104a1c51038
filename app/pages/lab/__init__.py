"""Show the paper's measurements of one model: the page called the lab."""
