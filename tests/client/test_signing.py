"""The light client's signatures, with the server's verifier and botocore as judges."""

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials

from elasticq.client.credentials import Credentials
from elasticq.client.signing import Signer
from elasticq.model.errors import SignatureDoesNotMatch
from elasticq.model.times import basic_s
from elasticq.wire.sigv4 import Key, Verifier

NOON_S = basic_s("20260131T120000Z") or 0
JSON_TYPE = "application/x-amz-json-1.0"
HOST = "127.0.0.1:9324"


def lines(signed: bytes, target: str, path: str = "/") -> list[bytes]:
    head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {JSON_TYPE}\r\n".encode()
    if target:
        head += f"X-Amz-Target: {target}\r\n".encode()
    return (head + signed).removesuffix(b"\r\n").split(b"\r\n")


def authorization(signed: bytes) -> bytes:
    return signed.partition(b"Authorization: ")[2].strip()


@pytest.mark.parametrize("day", [0, 1, 400])
def test_server_accepts_each_call_of_a_signer(day: int) -> None:
    verifier = Verifier([Key("AKID", "secret", "000000000000")])
    signer = Signer(Credentials("AKID", "secret"), "eu-west-1", HOST)
    for at_s in (0, 0, 1):
        for target, path in (("AmazonSQS.SendMessage", "/"), ("AmazonSQS.ListQueues", "/"), ("", "/_elasticq/peek")):
            now_s = NOON_S + day * 86_400 + at_s
            for body in (b"{}", b'{"a":1}'):
                signed = signer.headers(path, JSON_TYPE, target, body, now_s)
                assert verifier.check(lines(signed, target, path), authorization(signed), body, now_s)
            with pytest.raises(SignatureDoesNotMatch):
                verifier.check(lines(signed, target, path), authorization(signed), b"other", now_s)


def test_signature_is_botocores() -> None:
    signer = Signer(Credentials("AKID", "secret", "token"), "us-east-1", HOST)
    signed = signer.headers("/", JSON_TYPE, "AmazonSQS.SendMessage", b"{}", NOON_S)
    headers = {"Content-Type": JSON_TYPE, "Host": HOST, "X-Amz-Target": "AmazonSQS.SendMessage"}
    request = AWSRequest("POST", f"http://{HOST}/", headers | {"X-Amz-Date": "20260131T120000Z"}, b"{}")
    request.headers["X-Amz-Security-Token"] = "token"
    request.context["timestamp"] = "20260131T120000Z"
    auth = SigV4Auth(BotocoreCredentials("AKID", "secret", "token"), "sqs", "us-east-1")
    text = auth.string_to_sign(request, auth.canonical_request(request))
    assert authorization(signed).endswith(b"Signature=" + auth.signature(text, request).encode())
    assert b"X-Amz-Security-Token: token\r\n" in signed
