"""Endpoints that speak the API of OpenAI: chat completions, the list of models, files and batches."""

from tasks.judge.provider.openai.client import OpenAIProvider

PROVIDER = OpenAIProvider
