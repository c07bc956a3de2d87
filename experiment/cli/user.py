"""``wrods user``: accounts of the dashboard."""

from __future__ import annotations

import json
import sys

import click

from experiment.cli.terminal import option
from experiment.option_choices import ROLES

ROLE = click.Choice(ROLES)


@click.group()
def user() -> None:
    """Add and remove accounts of the dashboard.

    The server's password signs in as `owner`. Further accounts are stored in your config.toml, passwords as Argon2 hashes; a
    running server applies changes at once. Assistants see sessions, start and pause studies, add notes and flags, and run
    pilots. Owners can do everything. Raters see only the rating page. `wrods user totp` adds a second factor to an account.

    Example: wrods user add mara --role assistant
    """


def _password(name: str) -> str:
    """Return a password typed twice, or the first line of standard input without a terminal."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    return str(click.prompt(f"Password for {name}", hide_input=True, confirmation_prompt=True))


@user.command()
@click.argument("name")
@option("--role", "Role of the account.", type=ROLE, required=True)
def add(name: str, role: str) -> None:
    """Add an account (prompts for its password, or reads it from standard input)."""
    from experiment.people.dashboard.sign_ins import add_account

    add_account(name, role, _password(name))
    click.echo(f"{name} can sign in as {role}.")


@user.command("list")
@option("--json", "Print the accounts as JSON.", name="as_json")
def list_accounts(as_json: bool) -> None:
    """List the accounts, their roles and second factors."""
    from experiment.configuration import read_config
    from experiment.people.dashboard.sign_ins import OWNER, owners_second_factor, read_accounts

    config = read_config()
    rows = [(OWNER, "owner", owners_second_factor(config))]
    rows += [(account.name, account.role, account.second_factor) for account in read_accounts(config)]
    if as_json:
        accounts = [
            {"name": name, "role": role, "second_factor": factor is not None} for name, role, factor in rows
        ]
        click.echo(json.dumps(accounts))
        return
    for name, role, factor in rows:
        left = "" if factor is None else f"  second factor, {len(factor.recovery_hashes)} recovery codes left"
        click.echo(f"{name:<20} {role:<10}{left}".rstrip())


@user.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove an account and end its sign-ins everywhere."""
    from experiment.people.dashboard.sign_ins import remove_account

    remove_account(name)
    click.echo(f"{name} can no longer sign in.")


@user.command()
@click.argument("name")
def password(name: str) -> None:
    """Change an account's password and end its sign-ins everywhere."""
    from experiment.people.dashboard.sign_ins import change_password

    change_password(name, _password(name))
    click.echo(f"{name} has a new password and has been signed out everywhere.")


@user.command()
@click.argument("name")
@option("--remove", "Remove the second factor, for example after a phone is lost.", name="is_removed")
def totp(name: str, is_removed: bool) -> None:
    """Add a second factor to an account: a code from an authenticator app at each sign-in.

    Scan the QR code with an app (or type the secret) and confirm with the code that the app shows. Keep the recovery codes on
    paper: each signs in once without the phone. `owner` is the server's account. The account is signed out everywhere. Run the
    command again to replace the secret and the recovery codes.

    Example: wrods user totp mara
    """
    import pyotp

    from experiment.configuration import read_config
    from experiment.people.dashboard.sign_ins import (
        OWNER,
        SecondFactor,
        new_recovery_codes,
        read_accounts,
        recovery_hash,
        set_second_factor,
    )
    from stimuli.errors import UserError, unknown_name

    account_names = [OWNER, *(account.name for account in read_accounts(read_config()))]
    if name not in account_names:
        raise unknown_name("account", name, account_names)
    if is_removed:
        set_second_factor(name, None)
        click.echo(f"{name} now signs in with the password only, and has been signed out everywhere.")
        return
    secret = pyotp.random_base32()
    _show(pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name="wrods"), secret)
    factor = SecondFactor(secret)
    if factor.step_of(_code()) is None:
        raise UserError(
            "the code does not match this secret; nothing was changed",
            mend="Check the clocks of this computer and of the phone, then run the command again.",
        )
    codes = new_recovery_codes()
    set_second_factor(name, SecondFactor(secret, tuple(recovery_hash(name, code) for code in codes)))
    click.echo(f"{name} now needs a code to sign in, and has been signed out everywhere.")
    click.echo("Recovery codes (each works once). Write them down now; they will not be shown again:")
    for code in codes:
        click.echo(f"  {code}")


def _show(address: str, secret: str) -> None:
    import segno

    if sys.stdout.isatty():
        segno.make(address, error="l").terminal(compact=True)
    click.echo(f"Address  {address}")
    click.echo(f"Secret   {' '.join(secret[place : place + 4] for place in range(0, len(secret), 4))}")


def _code() -> str:
    """Return the app's current code, typed or from the next line of standard input without a terminal."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    return str(click.prompt("Code shown by the app"))
