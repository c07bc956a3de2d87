"""Import of responses collected elsewhere as sessions: released model outputs, and any table of responses."""
