"""What the tests of backfills share: a judge that answers the rubric `alignment`, and the key it is asked with."""

import pytest

from tests.support.servers.provider import Play, Provider, completion


@pytest.fixture
def scoring(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """A judge that gives every picture a 3."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    return provider
