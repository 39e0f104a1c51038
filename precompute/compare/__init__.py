"""Two models in one space: how alike their layers are, which vectors match, and one stitched to the other."""
