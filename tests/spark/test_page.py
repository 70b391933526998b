"""The Python of docs/spark.md, block after block as one program, on the Spark that is there."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.snippets import ROOT, blocks_of
from tests.spark.servers import Server

SHOWN = "http://127.0.0.1:9324"


@pytest.mark.spark
def test_every_python_block_of_the_page_runs(
    spark: Any, elasticq_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sqs = elasticq_server.sqs()
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    names: dict[str, Any] = {}
    for block in blocks_of(ROOT / "docs" / "spark.md"):
        if block.language == "python" and not block.reason:
            code = block.code.replace(SHOWN, elasticq_server.endpoint)
            exec(compile(code, block.place, "exec"), names)
    assert names["spark"] is spark
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
