"""How far this machine's clock is from the ledger's: a server's is the one that counts for all who share it."""

from sqlalchemy.engine import Connection

from tasks.ledger.ledger import Ledger
from tasks.ledger.statements import machine_of, now_us


def ahead_s(ledger: Ledger) -> float | None:
    """Seconds by which this machine's clock is ahead of the server's, below 0 behind; None for a ledger that is a file."""
    return ledger.read(_ahead_s)


def _ahead_s(connection: Connection) -> float | None:
    if connection.dialect.name == "sqlite":
        return None
    machine = machine_of(connection)
    now_us(connection)  # what opens a transaction is not to be in what is timed
    before_us = machine.time_ns() // 1000
    there_us = now_us(connection)
    return ((before_us + machine.time_ns() // 1000) / 2 - there_us) / 1e6
