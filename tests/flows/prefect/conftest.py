"""What tests of deployments share: one server for all of them, on which each finds none."""

from collections.abc import Iterator

import pytest
from prefect.client.orchestration import get_client


@pytest.fixture
def no_deployment_stays(prefect_api: str) -> Iterator[None]:
    """Take away what a test deployed: the next one deploys another file under the same name."""
    assert prefect_api
    yield
    with get_client(sync_client=True) as client:
        for found in client.read_deployments():
            client.delete_deployment(found.id)
