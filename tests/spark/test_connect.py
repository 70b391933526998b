"""Spark Connect: the source, the sink, foreachPartition and consume, by a client without a JVM of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import KEYS
from tests.spark.servers import ROOT, Server

JOB = Path(__file__).with_name("connected.py")
JOB_S_MAX = 300


@pytest.mark.spark
def test_a_client_of_spark_connect_reads_writes_and_consumes(elasticq_server: Server) -> None:
    pytest.importorskip("grpc", reason="pyspark[connect] is not installed here; scripts/spark_versions.py installs it")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    environment |= KEYS | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    command = [sys.executable, str(JOB), elasticq_server.endpoint]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=JOB_S_MAX, check=False)
    assert "CONNECTED [25, 25, 25]" in ran.stdout, ran.stdout[-2_000:] + ran.stderr[-5_000:]
