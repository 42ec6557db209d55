"""A publication's page in a notebook or a browser. It is shown as it was published, and changes nothing."""

import webbrowser
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile

from salon.errors import SalonError
from salon.places import Place


@dataclass(frozen=True)
class Report:
    """The page's bytes, and where they stand."""

    html: bytes
    place: Place
    name: str

    @property
    def path(self) -> Path:
        """The file; from an object store a copy in the folder for temporary files."""
        if not self.place.is_remote:
            return Path(self.place.root, self.name)
        with NamedTemporaryFile(prefix="salon-report-", suffix=".html", delete=False) as file:
            file.write(self.html)
        return Path(file.name)

    def open(self) -> None:
        """Show it in the browser. Raises SalonError where none can be started."""
        if not webbrowser.open(self.path.as_uri()):
            raise SalonError(f"no browser could be started here; open {self.path} in one")

    def __repr__(self) -> str:
        return f"Report({self.place.root}/{self.name})"

    def _repr_html_(self) -> str:
        """A frame without rights of its own but to run the page's script, which the page's own policy pins by its digest."""
        page = escape(self.html.decode(), quote=True)
        rights = 'sandbox="allow-scripts" title="Salon report" style="width:100%;height:80vh;border:0"'
        return f'<iframe {rights} srcdoc="{page}"></iframe>'
