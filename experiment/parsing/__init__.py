"""Parsers of raw replies by models and participants: labels, restored texts, free answers."""
