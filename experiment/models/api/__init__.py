"""Models behind OpenAI-compatible servers: chat completions, completions and responses; Batch API; any ``base_url``."""

from experiment.models.api.engine import ApiEngine, capabilities
from experiment.models.api.probe import NEEDS, Capabilities, Need
from experiment.models.api.sending import Status

__all__ = ["NEEDS", "ApiEngine", "Capabilities", "Need", "Status", "capabilities"]
