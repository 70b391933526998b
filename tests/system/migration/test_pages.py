"""What the pages on migration show is run, and their tables name all keys."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from elasticq.server.elasticmq import ElasticMq, _known_keys
from elasticq.server.settings import load
from tests.system.migration.conftest import StartServer

DOCS = Path(__file__).parents[3] / "docs"
MIGRATION = (DOCS / "migration.md").read_text()


def block(page: str, language: str, mark: str) -> str:
    blocks = re.findall(rf"```{language}(?: no-run:[^\n]*)?\n(.*?)```", page, re.DOTALL)
    (found,) = [each for each in blocks if mark in each]
    return str(found)


@pytest.mark.parametrize("key", list(_known_keys(ElasticMq)))
def test_the_table_names_every_key(key: str) -> None:
    """The last part stands in a row that has the first part, too."""
    first, last = key.partition(".")[0], key.rpartition(".")[2]
    rows = [line for line in MIGRATION.splitlines() if line.startswith("| `")]
    assert any(f"`{first}" in row and last in row for row in rows) or "template" in key


def test_the_example_is_checked_and_becomes_the_same_toml(tmp_path: Path) -> None:
    (tmp_path / "custom.conf").write_text(block(MIGRATION, "hocon", "queues"))
    script = block(MIGRATION, "sh", "config check").splitlines()[0]
    command = script.replace("elasticq ", f"{sys.executable} -m elasticq ", 1)
    done = subprocess.run(
        ["sh", "-euc", command],
        cwd=tmp_path,
        env={"PYTHONPATH": str(DOCS.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "not known" not in done.stderr
    assert load(tmp_path / "elasticq.toml", {}, {}) == load(tmp_path / "custom.conf", {}, {})


def test_the_queues_of_the_configuration_page_are_served(start: StartServer, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(block((DOCS / "configuration.md").read_text(), "toml", "[queues.orders]"))
    server = start("--config", "e.toml", "--port", "0", "--admin-port", "-1", "--memory")
    names = [url.rpartition("/")[2] for url in server.client().list_queues()["QueueUrls"]]
    assert names == ["audit", "builds", "lanes.fifo", "orders", "orders-dead", "payments.fifo", "urgent"]
    assert server.client().get_queue_url(QueueName="any")["QueueUrl"].endswith("/any")
    program = block(MIGRATION, "python", "boto3").replace("http://127.0.0.1:9324", server.url)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "hello\n"
