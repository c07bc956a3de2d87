"""Planned work of a run: a study's model sessions, generated lazily, and their requests as they become possible."""

from experiment.models.planning.plans import People, calls_before, needs_people, plan_sessions, told_of
from experiment.models.planning.prompt_preview import (
    Kinds,
    PreviewedRequest,
    first_prompts,
    kinds_of,
    longest_prompt,
    prompt_characters,
    prompt_in_context,
)
from experiment.models.planning.prompting_settings import (
    PromptingSettings,
    is_remote,
    read_prompting_settings,
    right_answer,
    tells_of_prompts,
)
from experiment.models.planning.session import (
    ModelSession,
    Person,
    TrialFeedback,
    canonical_hash,
    request_json,
    request_key,
)

__all__ = [
    "Kinds",
    "ModelSession",
    "People",
    "Person",
    "PreviewedRequest",
    "PromptingSettings",
    "TrialFeedback",
    "calls_before",
    "canonical_hash",
    "first_prompts",
    "is_remote",
    "kinds_of",
    "longest_prompt",
    "needs_people",
    "plan_sessions",
    "prompt_characters",
    "prompt_in_context",
    "read_prompting_settings",
    "request_json",
    "request_key",
    "right_answer",
    "tells_of_prompts",
    "told_of",
]
