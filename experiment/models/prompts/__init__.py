"""Prompts for planned trials, from the same plan that participants see; their texts and papers' prompts are data."""
