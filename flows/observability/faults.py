"""A fault of Salon's own: the sentence that says so, and the file in which the traceback stands. No error that was foreseen."""

import os
import sys
import tempfile
import traceback
from importlib.metadata import version

N_SAID = 300  # characters of the error's own text; the whole of it stands in the file


def fault(error: BaseException) -> str:
    """One sentence: what failed, where the details stand, how to report it. Neither holds a secret."""
    from flows.observability.redaction import redacted  # a broken installation may lack what these need
    from flows.observability.terminal import printable

    said = " ".join(printable(redacted(f"{type(error).__name__}: {error}")).split())[:N_SAID]
    details = "".join(traceback.format_exception(error))
    about = f"salon {version('salon')}, Python {sys.version.split()[0]}, {sys.platform}\n"
    where = _written(about + redacted(f"arguments: {sys.argv[1:]}\n\n{details}"))
    return (
        f"internal error in Salon ({said}); the details are in {where}. Replies already paid for are stored; run the "
        "same command again to continue. Please report it with that file, as CONTRIBUTING.md says"
    )


def _written(text: str) -> str:
    try:
        handle, path = tempfile.mkstemp(prefix="salon-fault-", suffix=".txt")  # for its owner alone
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        print(text, file=sys.stderr)
        return "the lines above (no file could be written)"
    return path
