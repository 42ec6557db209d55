"""The Prefect task of publishing. The work is in publication.py."""

from prefect import task

from tasks.prefect_options import OPTIONS
from tasks.publish.publication import publish

publish_tables = task(name="publish tables", task_run_name="publish tables", **OPTIONS)(publish)
"""Write the publication's folder, then move the pointer."""
