"""Models behind OpenAI-compatible servers: chat completions, completions and responses; Batch API; any ``base_url``."""

from experiment.models.api.capabilities import NEEDS, Capabilities, Need
from experiment.models.api.engine import ApiEngine, capabilities
from experiment.models.api.status import Status

__all__ = ["NEEDS", "ApiEngine", "Capabilities", "Need", "Status", "capabilities"]
