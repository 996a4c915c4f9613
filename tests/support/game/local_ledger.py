"""The file of an embedded ledger, for tests that set its clock. The clock stands in the file, so all
processes that share the ledger see it at once; chain/local/ledger_local.c is where that is written down."""

import contextlib
import sqlite3


def execute(path, *words):
    with contextlib.closing(sqlite3.connect(path, timeout=240)) as database, database:
        database.execute(*words)


def set_clock(path, seconds):
    """From here on the ledger's time stands still."""
    execute(path, "INSERT OR REPLACE INTO meta VALUES ('clock', ?1), ('clock-again', ?1)", (seconds,))


def pass_time(path, seconds):
    """The clock was set before."""
    execute(path, "UPDATE meta SET value = value + ? WHERE name IN ('clock', 'clock-again')", (seconds,))
