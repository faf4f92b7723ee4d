"""What vsr-remote registers with vsr."""

from __future__ import annotations

from vsr_core.contract import BackendDescriptor, hookimpl

__all__ = ["vsr_backends"]


@hookimpl
def vsr_backends() -> list[BackendDescriptor]:
    """The providers ``openai`` and ``ollama``; each exists where a configuration names an instance of it."""
    return [
        BackendDescriptor(
            name=name,
            contract="1.0",
            factory="vsr_remote.adapter:RemoteAdapter",
            summary=summary,
            open_namespace=True,
            configured_only=True,
        )
        for name, summary in (
            ("ollama", "Models served by Ollama"),
            ("openai", "OpenAI, and servers that speak its protocol"),
        )
    ]
