"""Prepared statements that run on the driver's own cursor, for rows written with every trial.

Building a statement, looking up its compiled form and setting up a result take SQLAlchemy several times as long as the database
takes to run it. A :class:`PreparedStatement` stores the text and the conversions that SQLAlchemy made for a kind of database;
running it converts the values and calls the driver, in the connection's current transaction.

On PostgreSQL a round trip takes longer than the statement. A statement whose result is not needed at once is therefore
deferred, and sent in one pipeline with the next statement on its connection. Its error is raised by the statement that it is
sent with, which belongs to the same operation: the writer ends each operation with a statement that is not deferred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import cache
from typing import Any, cast

from sqlalchemy import Column, Connection, Dialect, Engine, Table, bindparam, event, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import ClauseElement

Make = Callable[[bool], ClauseElement]
_PUT_OFF = "statements put off"
_CURSOR = "the cursor of statements that are made once"


class PreparedStatement:
    """A statement with named parameters, compiled once for each kind of database."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._compiled: dict[str, _Compiled] = {}

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Any] | None:
        """Run the statement and return its first row, or None."""
        compiled = self._for(connection)
        return compiled.run(connection, compiled.converted(values), is_asked=True)

    def ask(self, connection: Connection, values: Mapping[str, Any]) -> Callable[[], Sequence[Any] | None]:
        """Run the statement, on PostgreSQL together with the next one; return a function that returns its first row."""
        compiled = self._for(connection)
        parameters = compiled.converted(values)
        if not compiled.is_postgresql:
            row = compiled.run(connection, parameters, is_asked=True)
            return lambda: row
        cursor = _put_off(connection, compiled.text, parameters, is_asked=True)

        def first() -> Sequence[Any] | None:
            _send(connection)
            return cast("Sequence[Any] | None", cursor.fetchone())

        return first

    def execute(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Run a statement that returns nothing."""
        compiled = self._for(connection)
        compiled.run(connection, compiled.converted(values))

    def put_off(self, connection: Connection, *rows: Mapping[str, Any]) -> None:
        """Run a statement without results once for each row, on PostgreSQL together with the next statement."""
        compiled = self._for(connection)
        for row in rows:
            if compiled.is_postgresql:
                _put_off(connection, compiled.text, compiled.converted(row))
            else:
                compiled.run(connection, compiled.converted(row))

    def text(self, connection: Connection) -> str:
        """Return the statement's text for a connection's kind of database."""
        return self._for(connection).text

    def _for(self, connection: Connection) -> _Compiled:
        dialect = connection.dialect
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = _Compiled(self._make(dialect.name == "sqlite"), dialect)
            self._compiled[dialect.name] = compiled
        return compiled


class _Compiled:
    """A statement's text for one kind of database, and the conversions of its parameters."""

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        self.is_postgresql = dialect.name == "postgresql"
        # psycopg would parse an insert of fifty columns or more at every run, to number its parameters
        kind: Any = type(dialect)
        compiled: Any = statement.compile(
            dialect=kind(paramstyle="numeric_dollar") if self.is_postgresql else dialect
        )
        self.text = str(compiled)
        self._defaults: list[Any] = []
        self._places: dict[str, list[tuple[int, Any]]] = {name: [] for name in compiled.binds}
        for place, name in enumerate(compiled.positiontup):
            convert, default = (
                compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect),
                compiled.binds[name].effective_value,
            )
            self._places[name].append((place, convert))
            self._defaults.append(default if convert is None else convert(default))

    def converted(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the driver's parameters; a missing value is the statement's own, or null."""
        if not values.keys() <= self._places.keys():
            unknown = sorted(values.keys() - self._places.keys())
            raise TypeError(f"no parameters of this statement: {', '.join(unknown)}")
        converted = self._defaults.copy()
        for name, value in values.items():
            for place, convert in self._places[name]:
                converted[place] = value if convert is None else convert(value)
        return converted

    def run(self, connection: Connection, parameters: Any, *, is_asked: bool = False) -> Sequence[Any] | None:
        if not connection.in_transaction():
            connection.begin()
        if self.is_postgresql:
            sent = _put_off(connection, self.text, parameters)
            _send(connection)
            return cast("Sequence[Any] | None", sent.fetchone()) if is_asked else None
        with closing(connection.connection.cursor()) as cursor, _named_by_sqlalchemy(connection, self.text):
            cursor.execute(self.text, parameters)
            return cast("Sequence[Any] | None", cursor.fetchone()) if is_asked else None


@contextmanager
def _named_by_sqlalchemy(connection: Connection, text: str) -> Iterator[None]:
    """Raise a driver's error as SQLAlchemy's, by which callers distinguish faults."""
    try:
        yield
    except connection.dialect.loaded_dbapi.Error as error:
        raise DBAPIError.instance(
            text, None, error, connection.dialect.loaded_dbapi.Error, dialect=connection.dialect
        ) from error


def _put_off(connection: Connection, text: str, parameters: Any, *, is_asked: bool = False) -> Any:
    """Defer a statement until the next one; return the cursor for its rows."""
    cursor = None if is_asked else connection.info.get(_CURSOR)
    if cursor is None:
        from psycopg import RawCursor

        driver: Any = connection.connection.driver_connection
        cursor = RawCursor(driver)
        if not is_asked:  # making a cursor takes as long as half a statement
            connection.info[_CURSOR] = cursor
    connection.info.setdefault(_PUT_OFF, []).append((cursor, text, parameters))
    return cursor


def _send(connection: Connection) -> None:
    """Send all deferred statements to PostgreSQL."""
    waiting = connection.info.pop(_PUT_OFF, ())
    if not waiting:
        return
    with (
        _named_by_sqlalchemy(connection, waiting[-1][1]),
        waiting[0][0].connection.pipeline() if len(waiting) > 1 else nullcontext(),
    ):
        for cursor, *statement in waiting:
            cursor.execute(*statement)


def drop_put_off(connection: Connection, *, but: PreparedStatement | None = None) -> None:
    """Discard deferred statements, except one."""
    if not connection.invalidated and (waiting := connection.info.pop(_PUT_OFF, ())):
        retained = None if but is None else but.text(connection)
        connection.info[_PUT_OFF] = [statement for statement in waiting if statement[1] == retained]


def send_put_off(engine: Engine) -> None:
    """Send deferred statements before any other on an engine's connections; a rollback discards them."""
    event.listen(engine, "before_cursor_execute", lambda connection, *_: _send(connection))
    event.listen(engine, "commit", _send)
    event.listen(engine, "rollback", drop_put_off)


@cache
def insert_new(table: Table) -> PreparedStatement:
    """Return an insert that does nothing if a unique key exists, and otherwise returns the row's key."""

    def make(for_sqlite: bool) -> ClauseElement:
        insert = sqlite.insert if for_sqlite else postgresql.insert
        return (
            insert(table).values(_given(table)).on_conflict_do_nothing().returning(*table.primary_key.columns)
        )

    return PreparedStatement(make)


@cache
def insert_into(table: Table) -> PreparedStatement:
    """Return the plain insert into a table."""
    return PreparedStatement(lambda _: table.insert().values(_given(table)))


@cache
def insert_returning_key(table: Table) -> PreparedStatement:
    """Return an insert into a table that returns the key assigned by the database."""
    return PreparedStatement(
        lambda _: table.insert().values(_given(table)).returning(*table.primary_key.columns)
    )


@cache
def next_key(table: Table) -> PreparedStatement:
    """Return the query for the next key that PostgreSQL would assign; nobody else gets it."""
    name = cast("Column[Any]", table.autoincrement_column).name
    return PreparedStatement(lambda _: select(func.nextval(func.pg_get_serial_sequence(table.name, name))))


@cache
def insert_with_key(table: Table) -> PreparedStatement:
    """Return the insert of a row with a key from :func:`next_key`."""
    return PreparedStatement(lambda _: table.insert())


def _given(table: Table) -> dict[str, Any]:
    """Return a parameter for each column except a key that the database assigns."""
    return {
        column.key: bindparam(column.key, type_=column.type)
        for column in table.c
        if column is not table.autoincrement_column
    }
