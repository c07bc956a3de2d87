"""Says a design in plain English, for whoever checks it and for registration."""
