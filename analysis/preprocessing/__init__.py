"""From exported rows to the analysed ones: reasons, bounds, declared flags, and the tables that count them."""

from analysis.preprocessing.participant_flow import flow_steps

__all__ = ["flow_steps"]
