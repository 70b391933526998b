"""Envelopes in queues are signed where ``push.sign_queues`` says so, by the certificate that the server names."""

import json
import urllib.request
from base64 import b64decode
from collections.abc import Iterator

import boto3
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm

from elasticq.push.signer import text_to_sign
from elasticq.server.signatures import Signatures
from elasticq.testing import ElasticQ


def test_a_signer_is_made_once_for_a_key() -> None:
    signatures = Signatures()
    assert signatures.signer(b"k" * 32) is signatures.signer(b"k" * 32)
    assert signatures.signer(b"l" * 32).pem != Signatures().signer(b"k" * 32).pem


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticQ]:
    with ElasticQ(settings={"push": {"sign_queues": True}}) as server:
        yield server


@pytest.mark.parametrize(("version", "digest"), [("1", SHA1()), ("2", SHA256())])
def test_a_queue_gets_signed_envelopes(server: ElasticQ, version: str, digest: HashAlgorithm) -> None:
    sns = boto3.client("sns", endpoint_url=server.endpoint_url, region_name=server.region, **server.credentials)
    queues = [server.queue(f"signed{version}{name}").create() for name in "ab"]
    topic = sns.create_topic(Name=f"signed{version}", Attributes={"SignatureVersion": version})["TopicArn"]
    for queue in queues:
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn)
    sns.publish(TopicArn=topic, Message='ä "x"\n', Subject="s")
    envelopes = [json.loads(queue.peek()[0]["Body"]) for queue in queues]
    with urllib.request.urlopen(envelopes[0]["SigningCertURL"]) as answer:
        key = x509.load_pem_x509_certificate(answer.read()).public_key()
    assert isinstance(key, RSAPublicKey)
    for envelope in envelopes:
        key.verify(b64decode(envelope["Signature"]), text_to_sign(envelope).encode(), PKCS1v15(), digest)
