"""The Python of docs/spark.md, block after block as one program, on the Spark that is there."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.spark.servers import Server
from tests.system.docs.snippets import ROOT, blocks_of

SHOWN = "http://127.0.0.1:9324"


@pytest.mark.spark
def test_every_python_block_of_the_page_runs(
    spark: Any,
    elasticq_server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    sqs = elasticq_server.sqs()
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    bad = sqs.create_queue(QueueName="orders-bad")["QueueUrl"]
    blocks = [block for block in blocks_of(ROOT / "docs" / "spark.md") if block.language == "python"]
    program = tmp_path / "page.py"
    code = "\n".join(block.code for block in blocks if not block.reason)
    code = code.replace(SHOWN, elasticq_server.endpoint)
    for name in re.findall(r'"((?:checkpoint|out)[a-z-]*)"', code):  # the JVM looks for them where it was started
        code = code.replace(f'"{name}"', repr(str(tmp_path / name)))
    program.write_text(code)
    assert runpy.run_path(str(program), run_name="__main__")["spark"] is spark
    assert elasticq_server.counts(url) == (0, 0)
    assert [message["Body"] for message in elasticq_server.drain(bad)] == ["no JSON"]
    assert "2 orders" in capfd.readouterr().out
