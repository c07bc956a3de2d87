"""Reads raw replies of models and people: labels, restored texts, free answers."""
