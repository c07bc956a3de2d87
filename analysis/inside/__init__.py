"""Analyses of stored hidden states: probes, similarity of representations, and profiles over layers."""
