"""Train, store, measure and describe the demo model: ``python -m experiment.demo.training --out DIR``."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from experiment.demo.training.recipe import (
    RECIPE_FILE,
    ExampleSource,
    Recipe,
    read_recipe,
    split_words,
    words_sha256,
)

CARD_FILE = Path(__file__).with_name("card.md.jinja")
REPORT_EVERY = 50


def model_card(metrics: Mapping[str, Any]) -> str:
    """Return the card's text with the contents of ``metrics.json`` (``recipe``, ``training`` and ``held_out``)."""
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(CARD_FILE.read_text(encoding="utf-8")).render(metrics)


@click.command(help="Train the demo's language model. About 15 minutes on one processor core.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="New folder.")
@click.option("--steps", type=click.IntRange(min=1), help="Fewer steps than the recipe's, to try it out.")
def main(out: Path, steps: int | None) -> None:
    """Run the recipe once and write the model folder, its word list, its measures and its card."""
    if out.exists() and any(out.iterdir()):
        raise click.BadParameter(f"{out} is not empty; name a new folder.", param_hint="--out")
    from experiment.demo.training.network import build_network, build_tokenizer, save_model, train

    recipe = read_recipe()
    steps = steps or recipe.steps
    split = split_words(recipe)
    tokenizer = build_tokenizer()
    network = build_network(recipe, tokenizer)
    size = sum(weight.numel() for weight in network.parameters())
    click.echo(f"{len(split.training)} training words, {len(split.held_out)} held out, {size:,} parameters")

    began = time.process_time()
    recent: list[float] = []
    curve: list[dict[str, float]] = []

    def tell(step: int, loss: float) -> None:
        recent.append(loss)
        if step % REPORT_EVERY == 0 or step == steps:
            mean = sum(recent) / len(recent)
            recent.clear()
            curve.append({"step": step, "loss": round(mean, 5)})
            seconds = time.process_time() - began
            click.echo(f"step {step}/{steps}  loss {mean:.4f}  {seconds:.0f} CPU s")

    train(network, tokenizer, recipe, ExampleSource(recipe, split.training), steps, tell)
    save_model(network, tokenizer, out)
    shutil.copyfile(RECIPE_FILE, out / "recipe.json")
    training = {
        "parameters": size,
        "training_words": len(split.training),
        "held_out_words": len(split.held_out),
        "held_out_sha256": words_sha256(split.held_out),
        "steps": steps,
        "cpu_seconds": round(time.process_time() - began),
        "loss_curve": curve,
    }
    _write_json(out / "metrics.json", {"recipe": asdict(recipe), "training": training})
    describe(out)


def describe(folder: Path) -> None:
    """Measure the stored model on held-out words, complete ``metrics.json`` and write the model card."""
    from experiment.demo.training.network import measure

    path = folder / "metrics.json"
    metrics = json.loads(path.read_text(encoding="utf-8"))
    held_out = split_words(Recipe(**metrics["recipe"])).held_out
    metrics["held_out"] = measure(folder, held_out, click.echo)
    _write_json(path, metrics)
    (folder / "README.md").write_text(model_card(metrics), encoding="utf-8")


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
