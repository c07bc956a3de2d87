"""The demonstration: a small study, simulated readers, our own small model, and a report."""
