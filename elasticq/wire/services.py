"""The choice of the API that a form is for: by its signature, else its Version, else the name of its action.

The scope of the signature comes first, so that a request signed for one API is never read as one of another API.
"""

from collections.abc import Mapping

from elasticq.wire.operations import Operation, Service

Services = tuple[Service, ...]
"""The APIs of a port. The first one is the default."""


def pick(services: Services, credential: bytes, parameters: Mapping[str, str]) -> Service:
    """Return the service that a form is for. credential: the text with the scope of the signature; empty for none."""
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
    """Return the service whose format an error has, for a request that could not be read."""
    signed = _signed_for(services, credential)
    if signed is not None:
        return signed
    for service in services[1:]:
        if b"Version=%b" % service.version.encode() in body:
            return service
    return services[0]


def of_operation(services: Services, operation: Operation) -> Service:
    """Return the service that has the operation. For an operation of no service, that is the first one."""
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
