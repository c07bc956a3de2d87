"""Models behind OpenAI-compatible servers: chat completions, completions and responses; Batch API; any ``base_url``."""
