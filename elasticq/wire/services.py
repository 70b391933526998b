"""Tells which of the APIs of one port a form is for: the signature says it, else the Version, else the action's name.

A signature's scope comes first, so that nothing that was signed for one API is ever read as another's.
"""

from collections.abc import Mapping

from elasticq.wire.operations import Operation, Service

Services = tuple[Service, ...]
"""The APIs of a port; the first one is meant where nothing tells."""


def pick(services: Services, credential: bytes, parameters: Mapping[str, str]) -> Service:
    """The service that a form is for. credential: the text that holds the scope of a signature, if there is one."""
    signed = _signed_for(services, credential)
    if signed is not None:
        return signed
    version = parameters.get("Version", "")
    for service in services:
        if version and service.version == version:
            return service
    action = parameters.get("Action", "")
    for service in services:
        if action in service.operations or action in service.not_here:
            return service
    return services[0]


def guess(services: Services, credential: bytes, body: bytes) -> Service:
    """The service in whose form an error is told to a request that could not be read."""
    signed = _signed_for(services, credential)
    if signed is not None:
        return signed
    for service in services[1:]:
        if b"Version=%b" % service.version.encode() in body:
            return service
    return services[0]


def of_operation(services: Services, operation: Operation) -> Service:
    """The service that has the operation; the first one for those that stand in no table."""
    for service in services[1:]:
        if service.operations.get(operation.name) is operation:
            return service
    return services[0]


def _signed_for(services: Services, credential: bytes) -> Service | None:
    if not credential or len(services) == 1:
        return None
    for service in services:
        if service.scope_end in credential:
            return service
    return None
