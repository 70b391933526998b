"""The login for browsers. A browser cannot send the token as a header, so it gets a cookie for the token.

The cookie does not reveal the token. It is valid until the process ends or the token is renewed. Browsers send it
only with requests that this origin starts (SameSite=Strict).
"""

import os
from hashlib import sha256
from hmac import compare_digest, digest
from pathlib import Path
from typing import Final

from aiohttp import web

from elasticq.admin.authenticator import Token

COOKIE: Final = "elasticq_operator"
OPEN: Final = ("/login", "/static/page.css", "/static/icon.svg")
"""The pages that a browser needs before the login."""
_FORM: Final = Path(__file__).parent / "templates" / "login.html"
_WRONG: Final = "<!-- wrong -->"


class Login:
    """The login pages, and the cookie of this process."""

    def __init__(self, token: Token) -> None:
        self._token = token
        self._key = os.urandom(32)

    @property
    def is_wanted(self) -> bool:
        """Return whether operators need a token."""
        return bool(self._token.value)

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/login", self.form)
        app.router.add_post("/login", self.log_in)
        app.router.add_get("/logout", self.log_out)

    def is_shown_by(self, request: web.Request) -> bool:
        """Return whether a request has a valid cookie, or is for a page that needs none."""
        if request.path in OPEN:
            return True
        given = request.cookies.get(COOKIE, "").encode("utf-8", "replace")
        return self.is_wanted and compare_digest(given, self._value().encode())

    def _value(self) -> str:
        return digest(self._key, (self._token.value or "").encode(), sha256).hex()

    async def form(self, _: web.Request) -> web.Response:
        return self._form("")

    async def log_in(self, request: web.Request) -> web.Response:
        given = (await request.post()).get("token")
        if not isinstance(given, str) or not self.is_wanted:
            return self._form("", status=400)
        if not compare_digest(given.strip().encode("utf-8", "replace"), (self._token.value or "").encode()):
            return self._form('<p class="warning" role="alert">This is not the token.</p>', status=401)
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.set_cookie(COOKIE, self._value(), httponly=True, samesite="Strict", path="/", secure=request.secure)
        return answer

    async def log_out(self, _: web.Request) -> web.Response:
        answer = web.Response(status=303, headers={"Location": "/login"})
        answer.del_cookie(COOKIE, path="/")
        return answer

    def _form(self, notice: str, *, status: int = 200) -> web.Response:
        body = _FORM.read_text(encoding="utf-8").replace(_WRONG, notice)
        return web.Response(text=body, content_type="text/html", status=status)
