"""Measures computed from trials, one module for each kind; :mod:`analysis.plan` declares what a plan may name."""
