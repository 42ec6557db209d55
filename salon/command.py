"""The console script: where the application's packages stand, then its command line. Nothing else may import the application.

In a wheel they stand in a folder of their own beside this file, so that an environment gets one new name, `salon`; in a
checkout at its top. Their plain names (`tasks`, `schemas`, ...) come first on the path of this process and of those it starts,
and the folder one stands in does not, so that a project's own `tasks` is neither taken nor shadowed.
"""

import os
import sys
from pathlib import Path
from typing import NoReturn


def home() -> Path:
    """The folder that holds `flows`, `tasks`, `rubrics`, `schemas`, `demo` and `infra`."""
    here = Path(__file__).resolve().parent
    inside = here / "application"
    return inside if inside.is_dir() else here.parent


def main() -> NoReturn:
    """Run `salon` with the arguments it was given."""
    place = str(home())
    sys.path.insert(0, place)
    before = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part and part != place]
    os.environ["PYTHONPATH"] = os.pathsep.join([place, *before])
    os.environ["PYTHONSAFEPATH"] = "1"
    from flows.cli import main as command

    command()


if __name__ == "__main__":
    main()
