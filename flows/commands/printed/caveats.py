"""What speaks against a publication, on standard error beside what a program reads. What that is: tasks/publish/caveats.py."""

from typing import TYPE_CHECKING

from flows.observability.log_lines import complain
from flows.observability.terminal import one_line

if TYPE_CHECKING:
    from tasks.publish.caveats import Caveats


def warn_of(caveats: "Caveats") -> None:
    """A line each; nothing where nothing does."""
    for told in caveats.told:
        complain(one_line(told))
