"""Scoring of responses by wrods' rules or those of the papers, and rescoring without new calls."""
