"""The self-test of local models: ``wrods run --self-test``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from experiment.study import Study


def self_test_models(study: Study, models: Mapping[str, Mapping[str, Any]], *, as_json: bool) -> None:
    """Have each local model answer the same trials in different company, and print how far its answers differ."""
    from experiment.cli.run_dry import store_of_people
    from experiment.models.engines import open_engine
    from experiment.models.runs import self_test_of

    found = {}
    for name, settings in models.items():
        if not str(settings["use"]).startswith("hf:"):
            click.echo(f"{name}: only local models (hf:…) have a self-test", err=True)
            continue
        with store_of_people(study) as store:
            found[name] = self_test_of(study, name, settings, open_engine, store=store)
        if not as_json:
            _print_self_test(name, found[name])
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=1, default=str))
    if not all(one["holds"] for one in found.values()):
        sys.exit(1)


def _print_self_test(name: str, found: Mapping[str, Any]) -> None:
    click.echo(
        f"{name}: {'every level keeps its promise' if found['holds'] else 'a level does not keep its promise'}"
    )
    for one in found["comparisons"]:
        apart = one["largest_difference"]
        said = "nothing to compare" if apart is None else f"at most {apart:.2g} nats apart"
        click.echo(
            f"  {one['determinism']:<7}{one['left']} and {one['right']}, {one['trials']} trials: {said}, "
            f"{one['changed_answers']} answers differ"
        )
