"""The scripts that follow a ledger's version, run in one transaction. When and under which lock is connection.py's to say."""

from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection


def scripts() -> ScriptDirectory:
    """The scripts in versions/, each named by the version it leads to."""
    return ScriptDirectory(Path(__file__).parent)


def upgrade(connection: Connection, version: str) -> None:
    """Run every script that follows `version`, in the caller's transaction: all of them or none.

    The version stands in the ledger's own `ledger_meta`, where every Salon looks; Alembic's table of versions is not used.
    """
    following = [*scripts().iterate_revisions("head", version)]
    with Operations.context(MigrationContext.configure(connection)):
        for script in reversed(following):
            script.module.upgrade()
