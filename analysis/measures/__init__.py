"""What is computed from trials, a module for each kind of measure; :mod:`analysis.plan` declares what a plan may name."""
