"""Ratings of free answers: the rubric, the answers to rate, ratings and decisions, and agreement."""
