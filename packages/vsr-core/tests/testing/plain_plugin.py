"""The plugin that offers the plain backend."""

from vsr_core.contract import BackendDescriptor, hookimpl


@hookimpl
def vsr_backends():
    return [BackendDescriptor(name="plain", contract="1.0", factory="plain_backend:PlainBackend")]
