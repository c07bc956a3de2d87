"""Language models in a study's sessions: local checkpoints, OpenAI-compatible servers, baselines."""

from experiment.models.engine import Engine, Message, ModelSettings, Reply, ReplyStatus, Request

__all__ = ["Engine", "Message", "ModelSettings", "Reply", "ReplyStatus", "Request"]
