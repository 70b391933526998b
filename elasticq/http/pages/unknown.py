"""The answers to requests that belong to no API: 404, an error, or the page for people."""

from html import escape
from typing import Final

from aiohttp import web

from elasticq.http.context import ServerContext
from elasticq.http.pages.access import admit
from elasticq.http.pages.answers import not_found, refuse
from elasticq.http.pages.asked import Asked
from elasticq.model.errors import SqsError

_PAGE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


def answer(context: ServerContext, asked: Asked) -> web.Response:
    """Return 404, or an error if the caller is not admitted. A browser gets the page for people at the root path."""
    try:
        admit(context, asked)
    except SqsError as error:
        return refuse(context, asked, error)
    request = asked.request
    is_root = request.method == "GET" and asked.path == f"{context.context_path}/"
    return _root_page(context) if is_root and "text/html" in request.headers.get("Accept", "") else not_found()


def _root_page(context: ServerContext) -> web.Response:
    """Return a page for people who open this port in a browser, with a link to the operators' pages."""
    page_url = escape(context.page_url)
    where = (
        f'The pages for people are at <a href="{page_url}">{page_url}</a>'
        if page_url
        else "There are no pages for people, because admin.port is -1"
    )
    body = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>elasticq</title><h1>elasticq</h1>'
        f"<p>This port is for clients of SQS and SNS. {where}.</p></html>\n"
    )
    return web.Response(text=body, content_type="text/html", headers=_PAGE_HEADERS)
