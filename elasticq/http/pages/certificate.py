"""The page with the certificate that verifies notifications of topics."""

import re
from typing import Final

from aiohttp import web

from elasticq.http.context import ServerContext
from elasticq.http.pages.answers import not_found

PATH: Final = re.compile(r"/SimpleNotificationService-[0-9a-f]{32}\.pem")
"""The path of the certificate in notifications. The name changes with the certificate; there is one at a time."""


async def answer(context: ServerContext) -> web.Response:
    """Return the certificate of notifications. It is public, because those who verify have no credentials."""
    pem = None if context.certificate is None else await context.certificate()
    return not_found() if pem is None else web.Response(body=pem, content_type="application/x-pem-file")
