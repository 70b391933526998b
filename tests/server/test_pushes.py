"""The part of a process that posts notifications: its certificate, and that nothing is done before it is wanted."""

import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from elasticq.testing import ElasticQ

NAME = "SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"


def test_the_certificate_is_served_to_everybody() -> None:
    with ElasticQ(settings={"auth": {"mode": "strict", "keys": [KEY]}}) as server:
        with urllib.request.urlopen(f"{server.endpoint_url}/{NAME}") as answer:
            assert re.fullmatch(
                rb"-----BEGIN CERTIFICATE-----\n.+\n-----END CERTIFICATE-----\n", answer.read(), re.DOTALL
            )
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{server.endpoint_url}/Simple.pem")


KEY = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "secret", "account": "000000000000"}


def test_a_server_without_web_servers_as_subscriptions_loads_nothing_for_them() -> None:
    program = (
        "import sys; from elasticq.testing import ElasticQ\n"
        "with ElasticQ() as server:\n"
        "    server.queue('jobs').create()\n"
        "    assert not {'cryptography', 'elasticq.push.pusher'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
