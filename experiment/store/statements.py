"""Statements that are made once and run on the driver's own cursor, for what is written with every trial.

Building a statement, looking up its compiled form and setting up a result take SQLAlchemy several times as long as the database
takes to run it. A :class:`Prepared` statement keeps the text and the conversions that SQLAlchemy made for a kind of database;
running it converts the values and calls the driver, in whatever transaction the connection is in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Dialect, Table, bindparam
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement
from sqlalchemy.types import TypeEngine

Make = Callable[[bool], ClauseElement]


class Prepared:
    """A statement with named parameters, compiled once for each kind of database.

    Parameters
    ----------
    make : callable
        Returns the statement, for SQLite (True) or PostgreSQL (False). Its results come as the driver gives them, so it
        returns texts and numbers only.
    """

    def __init__(self, make: Make) -> None:
        self._make = make
        self._compiled: dict[str, _Compiled] = {}

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Any] | None:
        """Run the statement and return its first row, or None."""
        compiled = self._for(connection)
        return compiled.run(connection, compiled.converted(values), is_asked=True)

    def execute(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Run a statement that returns nothing."""
        compiled = self._for(connection)
        compiled.run(connection, compiled.converted(values))

    def execute_each(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement that returns nothing once for each of some rows."""
        compiled = self._for(connection)
        for row in rows:
            compiled.run(connection, compiled.converted(row))

    def _for(self, connection: Connection) -> _Compiled:
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            found = _Compiled(self._make(dialect.name == "sqlite"), dialect)
            self._compiled[dialect.name] = found
        return found


class _Compiled:
    """A statement's text for one kind of database, and what makes its parameters of Python's values."""

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)
        self._dialect = dialect
        self._text = str(compiled)
        self._in_order = compiled.positional
        self._names = frozenset(compiled.binds)
        self._parameters = [
            (name, _conversion(compiled.binds[name].type, dialect), compiled.binds[name].effective_value)
            for name in (compiled.positiontup if self._in_order else compiled.binds)
        ]

    def converted(self, values: Mapping[str, Any]) -> Any:
        """Return the driver's parameters; a value that is not given is the statement's own, or null."""
        if not values.keys() <= self._names:
            raise TypeError(
                f"no parameters of this statement: {', '.join(sorted(values.keys() - self._names))}"
            )
        found = [
            values.get(name, own) if convert is None else convert(values.get(name, own))
            for name, convert, own in self._parameters
        ]
        return (
            found
            if self._in_order
            else {part[0]: one for part, one in zip(self._parameters, found, strict=True)}
        )

    def run(self, connection: Connection, parameters: Any, *, is_asked: bool = False) -> Sequence[Any] | None:
        if not connection.in_transaction():
            connection.begin()
        cursor: Any = connection.connection.cursor()
        try:
            cursor.execute(self._text, parameters)
            return cursor.fetchone() if is_asked else None
        except self._dialect.loaded_dbapi.Error as error:
            # whoever runs operations tells faults apart by SQLAlchemy's names for them
            raise DBAPIError.instance(
                self._text, None, error, self._dialect.loaded_dbapi.Error, dialect=self._dialect
            ) from error
        finally:
            cursor.close()


def _conversion(kind: TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    return kind.dialect_impl(dialect).bind_processor(dialect)


@cache
def insert_new(table: Table) -> Prepared:
    """Return the insert of a row that does nothing where a unique key is taken, and returns the row's key else."""

    def make(for_sqlite: bool) -> ClauseElement:
        insert = sqlite.insert if for_sqlite else postgresql.insert
        return (
            insert(table).values(_given(table)).on_conflict_do_nothing().returning(*table.primary_key.columns)
        )

    return Prepared(make)


@cache
def insert_into(table: Table) -> Prepared:
    """Return the plain insert into a table."""
    return Prepared(lambda _: table.insert().values(_given(table)))


@cache
def insert_returning_key(table: Table) -> Prepared:
    """Return the insert into a table that returns the key which the database gave the row."""
    return Prepared(lambda _: table.insert().values(_given(table)).returning(*table.primary_key.columns))


def _given(table: Table) -> dict[str, Any]:
    """Return a parameter for each column but a key that the database counts itself."""
    return {
        column.key: bindparam(column.key, type_=column.type)
        for column in table.c
        if column is not table.autoincrement_column
    }
