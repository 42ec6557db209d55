"""The provider: payload, client, responses. What is asked and when is decided above."""
