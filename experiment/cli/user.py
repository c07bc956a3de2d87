"""``wrods user``: who may sign in to the experimenter's pages."""

from __future__ import annotations

import json
import sys

import click

from experiment.offered import ROLES

ROLE = click.Choice(ROLES)


@click.group()
def user() -> None:
    """Add and remove accounts of the experimenter's pages.

    The password of the server itself signs in as `owner`. Accounts beside it stand in your config.toml, passwords as Argon2
    hashes; a running server follows at once. An assistant sees sessions, starts and pauses, notes, flags and tries pilots; an
    owner may do everything; a rater sees the rating page only.

    Example: wrods user add mara --role assistant
    """


def _password(name: str) -> str:
    """Ask for a password twice, or take the first line of standard input where nobody types."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    return str(click.prompt(f"Password for {name}", hide_input=True, confirmation_prompt=True))


@user.command()
@click.argument("name")
@click.option("--role", type=ROLE, required=True, help="What the account may do.")
def add(name: str, role: str) -> None:
    """Add an account; asks for its password, or reads it from standard input."""
    from experiment.people.dashboard.accounts import add_account

    add_account(name, role, _password(name))
    click.echo(f"{name} may sign in as {role}.")


@user.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the accounts as JSON.")
def list_accounts(as_json: bool) -> None:
    """List the accounts and their roles."""
    from experiment.configuration import read_config
    from experiment.people.dashboard.accounts import read_accounts

    accounts = read_accounts(read_config())
    if as_json:
        click.echo(json.dumps([{"name": one.name, "role": one.role} for one in accounts]))
        return
    for one in accounts:
        click.echo(f"{one.name:<20} {one.role}")
    if not accounts:
        click.echo("No accounts beside the server's own, which signs in as owner.")


@user.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove an account and end its sign-ins everywhere."""
    from experiment.people.dashboard.accounts import remove_account

    remove_account(name)
    click.echo(f"{name} can no longer sign in.")


@user.command()
@click.argument("name")
def password(name: str) -> None:
    """Change an account's password and end its sign-ins everywhere."""
    from experiment.people.dashboard.accounts import change_password

    change_password(name, _password(name))
    click.echo(f"{name} has a new password and is signed out everywhere.")
