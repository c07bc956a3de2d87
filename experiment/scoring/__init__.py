"""Says whether an answer is right: by our rules, by those of the papers, and anew without a call."""
