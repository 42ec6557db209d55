"""Anthropic's own API: messages and message batches. As its reference has it in 2026-11; not tried on the service itself."""

from tasks.judge.provider.anthropic.client import AnthropicProvider

PROVIDER = AnthropicProvider
