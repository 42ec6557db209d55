"""Opening a ledger: making it where there is none, refusing what is not one, and saying what to do when that fails."""

import logging
import secrets
from typing import Any, Final

from sqlalchemy import create_engine, event, inspect, select, update
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, OperationalError, ProgrammingError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from schemas.errors import InputError, RefusedLedgerError, StoreError
from tasks.ledger.backoff import is_forbidden, is_refused, is_unresolved
from tasks.ledger.full_disk import is_full, root_of
from tasks.ledger.pipelining import MAX_SILENT_S, begin, give_up_when_silent, wait_for_results
from tasks.ledger.sqlite_files import not_writable, prepare, set_up_sqlite, sqlite_file
from tasks.ledger.statements import insert_where_absent, state_row, upsert
from tasks.ledger.tables import LEDGER_META, SCHEMA, Schema

log = logging.getLogger("salon.ledger")
BUSY_TIMEOUT_MS = 30_000
_LEAST_IDLE_MS = 10_000
_VERSION = select(LEDGER_META.c.value).where(LEDGER_META.c.name == "version")
_OF_BEFORE = {"1", "2"}
_CARRY_ON = """run the same command once with commit ca92e04, the last that can upgrade it. Or name another ledger: the next run \
copies into it the replies that the lake holds, as `salon import FILE --replies LAKE/replies/` does; those of a run that \
was killed before its snapshot exist only in this one"""
DAMAGED = """the file is damaged. Restore it from a backup; or move it and its -wal file away, keep them, and run the same \
command again: a new ledger takes the replies of the lake's snapshots. Only the old one has those bought since, and what \
budgets spent"""
_AWAY = ("refused", "connection failed", "terminating connection", "closed the connection", "connection is", "starting up")
"""Words of a server that is not there, or no longer."""

_LOGIN: Final = (
    "check user, host and database in `ledger`, and the password in PGPASSWORD or ~/.pgpass of this user; create the database "
    "once: createdb NAME"
)
_RIGHTS: Final = "grant this user USAGE and CREATE on the schema, and SELECT, INSERT, UPDATE, DELETE on all its tables"
_BY_WORDS: Final = {
    "disk image is malformed": DAMAGED,
    "not a database": 'this file is not a Salon ledger; name another one (ledger = "sqlite:///…") or move the file away',
    "read-only transaction": "name the server that takes writes (a standby does not), or set default_transaction_read_only off",
}
UNUSABLE: Final = (SQLAlchemyError, OSError, ImportError)
"""What a database that cannot be used raises: of another kind is a fault of Salon's own, and is told as one."""


def open_engine(url: URL, busy_timeout_ms: int, schema: Schema = SCHEMA, silent_s: float = MAX_SILENT_S) -> Engine:
    """An engine on a ledger of this schema, made if need be. Raises StoreError where it cannot be used."""
    file = sqlite_file(url)
    try:
        if file is not None:
            prepare(file, is_uri=str(url.database).startswith("file:"))
        # A server is told by `begin` where a transaction begins; what is only read needs none.
        on_server = {} if file is not None else {"connect_args": _network(url), "isolation_level": "AUTOCOMMIT"}
        engine = create_engine(url, **on_server)
    except UNUSABLE as error:
        raise explain(url, error) from error
    try:
        give_up_when_silent(engine, silent_s)
        _make_durable(engine, busy_timeout_ms)
        _check_or_create(engine, url, schema)
    except BaseException as error:
        engine.dispose()  # a ledger that cannot be used must not stay open either
        if isinstance(error, UNUSABLE):
            raise explain(url, error) from error
        raise
    return engine


def _network(url: URL) -> dict[str, Any]:
    """A server's machine that vanishes is noticed within half a minute; libpq would wait for hours. The URL has the last word."""
    if url.get_driver_name() not in ("psycopg", "psycopg2"):
        return {}
    seconds = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
    return {name: value for name, value in (seconds | {"tcp_user_timeout": 30_000}).items() if name not in url.query}


def _make_durable(engine: Engine, busy_timeout_ms: int) -> None:
    """Every commit is on the disk before it returns, and nobody waits for another longer than the timeout."""
    set_up = set_up_sqlite if engine.dialect.name == "sqlite" else _set_up_postgresql
    event.listen(engine, "connect", lambda connection, _: set_up(connection, busy_timeout_ms))
    wait_for_results(engine)


def _set_up_postgresql(connection: Any, busy_timeout_ms: int) -> None:
    """A machine that vanishes in mid-transaction holds its locks half the timeout: who waits for them outlives it."""
    unsynced = "current_setting('synchronous_commit') IN ('off', 'local')"
    settings = (
        f"SET lock_timeout = {busy_timeout_ms}",
        f"SET idle_in_transaction_session_timeout = {max(busy_timeout_ms // 2, _LEAST_IDLE_MS)}",
        f"SELECT set_config('synchronous_commit', 'on', false) WHERE {unsynced}",
    )
    cursor = connection.cursor()
    cursor.execute("; ".join(settings))  # sent together
    cursor.close()


def parse_url(address: str) -> URL:
    """The URL of a ledger, sqlite:///path or postgresql://user@host/name, which is psycopg's. Raises InputError."""
    try:
        url = make_url(address)
        if url.drivername in ("postgresql", "postgres"):  # SQLAlchemy would take psycopg2, which Salon does not bring
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise InputError(
            f"ledger = {without_password(address)!r} is not a database URL that can be used; "
            "write sqlite:///ledger.db or postgresql+psycopg://user@host/name"
        ) from error
    return url


def without_password(address: str) -> str:
    """A database URL as it may be shown."""
    try:
        return shown(make_url(address))
    except ArgumentError:
        return address.partition("://")[0] + "://…" if "://" in address else address[:40]


def shown(url: URL) -> str:
    """The same of a URL. A password may also stand in its query, as libpq takes it."""
    return url.difference_update_query([name for name in url.query if "pass" in name]).render_as_string(hide_password=True)


def explain(url: URL, error: Exception) -> Exception:
    """A driver's error as one sentence with what to do. Statements and their values stay out of it. Any other error as it is."""
    if not isinstance(error, UNUSABLE):
        return error
    cause = root_of(error)
    error = cause if isinstance(cause, SQLAlchemyError) else error  # why the database undid all by itself
    said = " ".join(str(getattr(error, "orig", None) or error).split())[:300]
    if is_refused(error) or is_forbidden(error):
        return RefusedLedgerError(f"the ledger {shown(url)} cannot be used: {said}; {_RIGHTS if is_forbidden(error) else _LOGIN}")
    advice = "fix this, then run the same command again; what was stored is kept"
    if "locked" in said or "busy" in said or "lock timeout" in said:
        advice = "another process has locked it; wait for that process or stop it, then run the same command again"
    elif is_unresolved(error):
        advice = f"check {url.host}, the host's name in `ledger`, and that it can be resolved from here"
    elif any(words in said for words in _AWAY):
        advice = "check that the server runs and can be reached, then run the same command again; what was stored is kept"
    elif is_full(error) or "full" in said or "No space" in said:
        advice = "the disk is full; free space, then run the same command again: what was stored is kept"
    elif known := [one for words, one in _BY_WORDS.items() if words in said]:
        advice = known[0]
    elif "readonly" in said or "unable to open" in said or "Permission" in said:
        file = sqlite_file(url)
        why = not_writable(file) if file is not None else None
        advice = "; ".join(why or ("check the folder, its permissions, and whether its file system is writable",))
    return StoreError(f"the ledger {shown(url)} cannot be used: {said}; {advice}")


def _check_or_create(engine: Engine, url: URL, schema: Schema) -> None:
    """Make a new ledger's tables, carry an earlier version forward, refuse what is neither."""
    name = shown(url)
    version = _version(engine)
    if version is None:
        names = inspect(engine).get_table_names()
        if LEDGER_META.name not in names:
            if names and sqlite_file(url) is not None:  # a server's database may be shared, a file is the ledger's alone
                raise StoreError(f"{name} is not a Salon ledger (it holds {', '.join(names[:3])}); name another file")
            _create(engine, schema)
        version = _version(engine)
    if version is not None and schema.migrations_from(version):
        version = _upgrade(engine, schema)
    if version == schema.version:
        return
    advice = _CARRY_ON if version in _OF_BEFORE else "use the Salon version that wrote it, or a newer one"
    raise StoreError(f"the ledger {name} has version {version}, but this Salon reads version {schema.version}; {advice}")


def _version(engine: Engine) -> str | None:
    """The version of the ledger that is there; None where there is none. Asked without looking what tables there are."""
    with engine.connect() as connection:
        try:
            found: str | None = connection.execute(_VERSION).scalar()
        except (OperationalError, ProgrammingError) as error:
            if is_forbidden(error):
                raise
            return None
        return found


def _upgrade(engine: Engine, schema: Schema) -> str | None:
    """Carry the ledger forward in one transaction. Of processes that come at once the first does it; the version there is now."""
    with engine.begin() as connection:
        begin(connection, is_alone=True)
        version: str | None = connection.execute(_VERSION).scalar()
        for migrate in schema.migrations_from(version or ""):
            migrate(connection)
            version = schema.version
        connection.execute(update(LEDGER_META).where(LEDGER_META.c.name == "version").values(value=version))
        connection.execute(upsert(engine, LEDGER_META), state_row(secrets.token_hex(16)))
    return version


def _create(engine: Engine, schema: Schema) -> None:
    """Make the tables in one transaction; two processes may do so at once."""
    for is_last_try in (False, True):
        try:
            with engine.begin() as connection:
                begin(connection, is_alone=True)
                for table in schema.metadata.sorted_tables:
                    connection.execute(CreateTable(table, if_not_exists=True))
                    for index in table.indexes:
                        connection.execute(CreateIndex(index, if_not_exists=True))
                connection.execute(insert_where_absent(engine, LEDGER_META), [{"name": "version", "value": schema.version}])
        except (IntegrityError, OperationalError, ProgrammingError):
            if is_last_try:
                raise
        else:
            return
