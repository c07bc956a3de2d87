"""The page of corpora shows the registry as it is."""

from __future__ import annotations

from stimuli.corpora import corpora
from tests.write_corpora_page import PAGE, corpora_page


def test_the_page_of_corpora_is_up_to_date():
    page = PAGE.read_text("utf-8")
    assert page == corpora_page(page), "run: python -m tests.write_corpora_page"
    assert all(f"| `{name}` |" in page for name in corpora())
