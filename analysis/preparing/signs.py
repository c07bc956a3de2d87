"""Rules by which a study declared that sessions of people may be excluded, held against the trials themselves.

The dashboard measures the same signs while a study runs and its owner decides (an ``excluded`` flag); analysis reads the decision
from ``excluded_reason``. Here the declared rules are looked up once more, so that a report can say which sessions meet a
rule and were kept, or were taken out without one. Signs of key strokes are not in the trials table and are named as such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from analysis.plan import RIGHT_SHARE, Fault, SignRule, read_sign_rule
from stimuli.errors import error_at

FASTEST_MS = 200.0
"""An answer in less than this counts as too fast, as on the dashboard."""


def declared_rules(exclude: Mapping[str, Any]) -> list[SignRule]:
    """Read ``analysis.exclude.sessions`` of a study."""
    found = []
    for sign, said in (exclude.get("sessions") or {}).items():
        try:
            found.append(read_sign_rule(str(sign), said))
        except Fault as fault:
            raise error_at(f"analysis.exclude.sessions.{sign}", *fault.args) from None
    return found


def session_signs(trials: pd.DataFrame) -> pd.DataFrame:
    """Measure the signs of careless answering of every session of people or simulated readers."""
    rows = trials[trials["reader_kind"].isin(["human", "simulated"]) & ~trials["is_practice"].astype(bool)]
    found = rows.groupby("session_id", sort=True)[["reader_group", "reader"]].first()
    for sign, measure in _SIGNS.items():
        found[sign] = measure(rows).reindex(found.index).astype(float)
    return found


def sessions_against_rules(trials: pd.DataFrame, exclude: Mapping[str, Any]) -> pd.DataFrame:
    """Hold every session against every declared rule."""
    rules = declared_rules(exclude)
    signs = session_signs(trials)
    given = (
        trials["flagged_reason"].notna() if "flagged_reason" in trials else trials["excluded_reason"].notna()
    )
    out = given.groupby(trials["session_id"]).all().reindex(signs.index)
    tables = []
    for rule in rules:
        measured = rule.sign in signs
        value = signs[rule.sign] if measured else pd.Series(float("nan"), index=signs.index)
        meets = rule.meets(value).astype("boolean")
        tables.append(
            pd.DataFrame(
                {
                    "session_id": signs.index,
                    "reader_group": signs["reader_group"].to_numpy(),
                    "reader": signs["reader"].to_numpy(),
                    "sign": rule.sign,
                    "rule": rule.said,
                    "value": value.to_numpy(),
                    "meets": (meets if measured else meets.mask(meets.notna())).to_numpy(),
                    "excluded": out.to_numpy(dtype=bool),
                }
            )
        )
    columns = ["session_id", "reader_group", "reader", "sign", "rule", "value", "meets", "excluded"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def _share(rows: pd.DataFrame, column: str, is_sign: Callable[[pd.Series[float]], pd.Series[bool]]) -> Any:
    if column not in rows:
        return pd.Series(dtype=float)
    known = rows[rows[column].notna()]
    return is_sign(known[column].astype(float)).groupby(known["session_id"]).mean()


def _sum(rows: pd.DataFrame, column: str) -> Any:
    if column not in rows:
        return pd.Series(dtype=float)
    known = rows[rows[column].notna()]
    return known[column].astype(float).groupby(known["session_id"]).sum()


def _missed_checks(rows: pd.DataFrame) -> Any:
    checks = rows[rows["is_attention_check"].astype(bool)]
    return (~(checks["correct"] == 1)).groupby(checks["session_id"]).sum()


def _right_share(rows: pd.DataFrame) -> Any:
    tested = rows[~rows["is_attention_check"].astype(bool) & ~rows["is_filler"].astype(bool)]
    judged = tested[tested["correct"].notna() | (tested["response_status"] == "timeout")]
    return (judged["correct"] == 1).groupby(judged["session_id"]).mean()


_SIGNS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "attention_checks_failed": _missed_checks,
    RIGHT_SHARE: _right_share,
    "too_fast": lambda rows: _share(rows, "rt", lambda times: times < FASTEST_MS),
    "hidden": lambda rows: _sum(rows, "hidden_ms"),
    "dropped_frames": lambda rows: _share(rows, "dropped_frames", lambda counts: counts > 0),
    "pastes": lambda rows: _sum(rows, "paste_count"),
    "keyless": lambda rows: _sum(rows, "keyless_chars"),
}
