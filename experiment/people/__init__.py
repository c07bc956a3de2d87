"""The participant interface and its API, the experimenter dashboard, and the preview."""
