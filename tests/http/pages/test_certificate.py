"""The certificate of notifications, for everybody."""

from elasticq.wire.browsers import Browsers
from tests.http.desk import Desk, get

PATH = "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
PEM = b"-----BEGIN CERTIFICATE-----\n"


async def pem() -> bytes | None:
    return PEM


async def none() -> bytes | None:
    return None


async def test_the_certificate_needs_no_signature() -> None:
    desk = Desk(auth="strict", browsers=Browsers())
    desk.context.certificate = pem
    answer = await desk.ask(get(PATH))
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, "application/x-pem-file", PEM)
    assert (await desk.ask(get(PATH.replace("0123", "xyz")))).status == 403
    await desk.close()


async def test_without_a_certificate_its_page_is_404() -> None:
    desk = Desk()
    assert (await desk.ask(get(PATH))).status == 404
    desk.context.certificate = none
    assert (await desk.ask(get(PATH))).status == 404
    await desk.close()
