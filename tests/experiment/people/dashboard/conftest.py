"""A served study and people who sign in to its pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from argon2 import PasswordHasher
from flask.testing import FlaskClient

from experiment.people.dashboard import accounts
from experiment.people.dashboard.authentication import _form_token

PASSWORDS = {
    "ada": "a long password",
    "ben": "another long one",
    "cora": "the third password",
    "dan": "a fourth password",
}
ROLES = {"ada": "owner", "ben": "assistant", "cora": "rater", "dan": "rater"}


@dataclass
class Visitor:
    """A browser at the experimenter's pages: follows the forms that it finds."""

    client: FlaskClient

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(
            path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )

    def token(self) -> str:
        cookie = self.client.get_cookie("wrods_admin")
        return "" if cookie is None else _form_token(cookie.value)

    def post(self, path: str, **fields: Any) -> Any:
        return self.client.post(path, data={"csrf": self.token()} | fields)

    def sign_in(self, name: str, password: str) -> Any:
        self.client.get("/admin/login")
        return self.post("/admin/login", name=name, password=password)


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(accounts, "PasswordHasher", lambda: cheap)


@pytest.fixture
def people() -> dict[str, str]:
    """Accounts of every role in the tester's own configuration; name → password."""
    for name, role in ROLES.items():
        accounts.add_account(name, role, PASSWORDS[name])
    return PASSWORDS


@pytest.fixture
def visit(site: Any, people: dict[str, str]) -> Iterator[Callable[[str], Visitor]]:
    """Return a function that signs somebody in and gives their browser."""

    def sign_in(name: str, at: Any = None) -> Visitor:
        visitor = Visitor((at or site).app.test_client())
        assert visitor.sign_in(name, people[name]).status_code == 302
        return visitor

    yield sign_in


def words_of(page: str) -> str:
    """Return what a page says, without its marks."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
