"""The screens of a session, planned once from study and items; participants and models get the same plan."""

from experiment.procedure.plan_builder import (
    Plan,
    PlannedTrial,
    accepted,
    participant_view,
    plan_session,
    trials_of,
)

__all__ = ["Plan", "PlannedTrial", "accepted", "participant_view", "plan_session", "trials_of"]
