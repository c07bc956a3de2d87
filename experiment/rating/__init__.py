"""Ratings of free answers: the rubric, the answers to rate, what raters and who decides say, how far they agree."""
