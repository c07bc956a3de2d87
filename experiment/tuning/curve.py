"""The loss of every step, in ``loss.csv``: what is written behind the last checkpoint is written again when it is made again."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from stimuli.files import replace_file

FILE = "loss.csv"
COLUMNS = ("step", "epoch", "tokens", "training_loss", "validation_loss", "learning_rate", "seconds")


@dataclass(frozen=True)
class Point:
    """One step."""

    step: int  # from 1; 0 is the model as it was
    epoch: float  # epochs done
    tokens: int  # tokens read by then
    # training_loss, validation_loss: nats a token; the first before the step's change of weights, the second
    # after it
    training_loss: float | None
    validation_loss: float | None
    learning_rate: float
    seconds: float

    def cells(self) -> list[str]:
        """Return the row of the file."""
        losses = (
            "" if loss is None else f"{loss:.6f}" for loss in (self.training_loss, self.validation_loss)
        )
        return [
            str(self.step), f"{self.epoch:.4f}", str(self.tokens), *losses, f"{self.learning_rate:.6g}", f"{self.seconds:.2f}",
        ]  # fmt: skip


class Curve:
    """Writes the file, a row a step.

    ``step``: the step of the checkpoint from which training goes on; rows behind it are dropped.
    """

    def __init__(self, folder: Path, step: int | None) -> None:
        self.file = folder / FILE
        kept = [] if step is None else [row for row in read_curve(self.file) if row.step <= step]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(one.cells() for one in kept)
        replace_file(self.file, text.getvalue())

    def add(self, point: Point) -> None:
        """Write a step."""
        with self.file.open("a", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerow(point.cells())


def read_curve(file: Path) -> list[Point]:
    """Return the steps of a file; none where there is no file. A last row that was cut off is left out."""
    if not file.is_file():
        return []
    found = []
    with file.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if None in row.values() or not row.get("seconds"):
                continue
            training, validation = (float(row[name]) if row[name] else None for name in COLUMNS[3:5])
            found.append(
                Point(
                    int(row["step"]), float(row["epoch"]), int(row["tokens"]), training, validation,
                    float(row["learning_rate"]), float(row["seconds"]),
                )
            )  # fmt: skip
    return found
