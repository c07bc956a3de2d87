"""Differences in accuracy on the percentage-point scale: people, each model, and the difference between them."""
