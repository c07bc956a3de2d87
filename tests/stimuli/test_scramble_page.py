"""The page of scrambles is made from the registry and is up to date."""

from __future__ import annotations

from tests.write_scramble_page import PAGE, scramble_page


def test_the_page_of_scrambles_is_up_to_date():
    assert PAGE.read_text("utf-8") == scramble_page(), "run: python -m tests.write_scramble_page"
