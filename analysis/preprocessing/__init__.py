"""From handed-over rows to those that an analysis uses: reasons, bounds, declared signs, and the tables that count them."""

from analysis.preprocessing.participant_flow import flow_steps

__all__ = ["flow_steps"]
