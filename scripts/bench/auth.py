"""CPU time of checking a signature, per request and in process, next to that of hashing alone.

    python scripts/bench auth [--requests 1000000] [--rounds 5]

The requests are sends by boto3. Each has another body, and the client's clock advances a second for 1,000 of them.
"""

import argparse
import hashlib
import hmac
import statistics
import time
from collections.abc import Callable

from elasticq.model.times import basic, basic_s
from elasticq.wire.sigv4 import Key, Verifier

KEY = Key("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "000000000000")
NAMES = "content-type;host;x-amz-date;x-amz-target;x-amzn-query-mode"
START_S = basic_s("20260131T120000Z") or 0
PER_SECOND = 1_000


def request(number: int) -> tuple[list[bytes], bytes, bytes, int]:
    """Return a signed send: lines of the head, Authorization, body, and time in seconds."""
    at_s = START_S + number // PER_SECOND
    now = basic(at_s)
    url = "http://127.0.0.1:9324/000000000000/orders"
    body = f'{{"QueueUrl": "{url}", "MessageBody": "message {number:010}"}}'.encode()
    signed = {
        "Content-Type": "application/x-amz-json-1.0",
        "Host": "127.0.0.1:9324",
        "X-Amz-Date": now,
        "X-Amz-Target": "AmazonSQS.SendMessage",
        "x-amzn-query-mode": "true",
    }
    canonical = "\n".join(
        ["POST", "/", "", *(f"{name.lower()}:{value}" for name, value in sorted(signed.items())), "", NAMES]
    )
    scope = f"{now[:8]}/us-east-1/sqs/aws4_request"
    digest = hashlib.sha256(f"{canonical}\n{hashlib.sha256(body).hexdigest()}".encode()).hexdigest()
    signing_key = b"AWS4" + KEY.secret_access_key.encode()
    for part in scope.split("/"):
        signing_key = hmac.digest(signing_key, part.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}"
    signature = hmac.digest(signing_key, text.encode(), "sha256").hex()
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={KEY.access_key_id}/{scope}, SignedHeaders={NAMES}, Signature={signature}"
    )
    lines = [
        "POST / HTTP/1.1",
        *(f"{name}: {value}" for name, value in signed.items()),
        "Accept-Encoding: identity",
        "User-Agent: Boto3/1.44.5 md/Botocore#1.44.5 ua/2.1 os/linux md/arch#x86_64 lang/python#3.11",
        f"Authorization: {authorization}",
        f"amz-sdk-invocation-id: 00000000-0000-4000-8000-{number:012x}",
        "amz-sdk-request: attempt=1; max=3",
        f"Content-Length: {len(body)}",
    ]
    return [line.encode() for line in lines], authorization.encode(), body, at_s


def per_request_us(run: Callable[[], object], count: int) -> float:
    started_s = time.process_time()
    run()
    return (time.process_time() - started_s) * 1e6 / count


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=1_000_000, help="requests in a round (1000000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")


def main(options: argparse.Namespace) -> None:
    made = [request(number) for number in range(min(20 * PER_SECOND, options.requests))]
    repeats = max(options.requests // len(made), 1)
    verifier = Verifier([KEY])

    def check_all() -> None:
        check = verifier.check
        for _ in range(repeats):
            for lines, authorization, body, at_s in made:
                check(lines, authorization, body, at_s)

    def hash_all() -> None:
        signing_key, sha256, digest = bytes(32), hashlib.sha256, hmac.digest
        for _ in range(repeats):
            for _, authorization, body, _ in made:
                sha256(body).hexdigest()
                sha256(authorization + authorization).hexdigest()
                digest(signing_key, authorization, "sha256").hex()

    count = repeats * len(made)
    checks = [per_request_us(check_all, count) for _ in range(options.rounds)]
    hashes = [per_request_us(hash_all, count) for _ in range(options.rounds)]
    print(f"{count:,} requests, {options.rounds} rounds")
    print(f"strict SigV4       {statistics.median(checks):.2f} us a request (median; best {min(checks):.2f})")
    print(f"two hashes, a HMAC {statistics.median(hashes):.2f} us: the hashing of a check that caches nothing")
