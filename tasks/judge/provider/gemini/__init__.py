"""Google's Gemini API: generateContent and its Batch API. As its reference has it in 2026-11; not tried on the service itself."""

from tasks.judge.provider.gemini.client import GeminiProvider

PROVIDER = GeminiProvider
