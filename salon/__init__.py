"""What a notebook imports: publications read by their tables alone, and Salon's commands started as processes of their own.

Nothing here imports the packages of the application, so that it works in any project, whatever is called `tasks` there; and
nothing heavy is imported before it is used.
"""

from salon.errors import SalonError
from salon.finding import agreements, open, publications  # noqa: A004 - `salon.open`, as in `gzip.open`
from salon.notebook import Report
from salon.publication import Publication
from salon.running import Plan, parse, plan, run
from salon.samples import Samples

__all__ = ["Plan", "Publication", "Report", "SalonError", "Samples", "agreements", "open", "parse", "plan", "publications", "run"]
