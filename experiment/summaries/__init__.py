"""Descriptions of a design in plain English, for checking and for registration."""
