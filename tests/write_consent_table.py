"""Writes the table of the consent form's wording into docs/ethics.md: ``python -m tests.write_consent_table``."""

from __future__ import annotations

from pathlib import Path

from experiment.templates import consent_source

PAGE = Path(__file__).resolve().parent.parent / "docs" / "ethics.md"
BEGINS, ENDS = (
    "<!-- consent form: made by python -m tests.write_consent_table -->\n",
    "<!-- end of the consent form -->",
)
FROM_TEMPLATE = {
    "purpose": "what the study wants to find out",
    "task": "what participants do",
    "duration": "minutes",
}


def with_consent_table(page: str) -> str:
    """Return the page with the wording that the templates have now."""
    before, _, rest = page.partition(BEGINS)
    rows = ["| element | minimum wording | recommended wording |", "| --- | --- | --- |"]
    for one in consent_source()["elements"]:
        minimum = one["minimum"]
        for name, meaning in FROM_TEMPLATE.items():
            minimum = minimum.replace(f"{{{name}}}", f"*({meaning})*")
        rows.append(f"| {one['element']} | {minimum} | {one.get('recommended', '')} |")
    return before + BEGINS + "\n" + "\n".join(rows) + "\n\n" + ENDS + rest.partition(ENDS)[2]


if __name__ == "__main__":
    PAGE.write_text(with_consent_table(PAGE.read_text("utf-8")), "utf-8")
