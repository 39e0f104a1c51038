"""The lab: the paper's measurements of one model."""
