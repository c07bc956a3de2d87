"""The experimenter dashboard: active sessions, data quality, audit, and rating of statements."""
