"""The driver that is killed: reads a queue as a stream into files, for ever; a line is what one message became.

``python -m tests.spark.killed PLAN``: a JSON object of url, out, checkpoint, sink, options, conf. The sink ``files`` is
Spark's own; ``actions`` is a foreachBatch with two actions on the batch, which is so read twice.
The master ``standalone`` is a Spark cluster of its own.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from elasticq.spark import run_forever, session
from elasticq.spark.starting import prepare
from tests.spark.marked import MarkedSource

LINE = "concat_ws(' ', body, messageId, batch, partition, receiveCount) value"
FAILURES_MAX = 1_000
TRIGGER = "50 milliseconds"


HOSTS = ("127.0.0.2", "127.0.0.3")  # Spark never speculates on the host that a task runs on already
STARTED = re.compile(r"Starting Spark master at (spark://\S+)")


def standalone() -> str:
    """A Spark cluster on hosts that are this machine; its master's URL. It ends with the job's session."""
    prepare("local")
    spark_class = os.path.join(os.environ["SPARK_HOME"], "bin", "spark-class")
    os.environ["SPARK_NO_DAEMONIZE"] = "1"
    command = [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
    command += ["--port", "0", "--webui-port", "0"]
    master = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert master.stderr is not None
    url = next(match[1] for line in master.stderr if (match := STARTED.search(line)))
    threading.Thread(target=master.stderr.read, daemon=True).start()
    for host in HOSTS:
        command = [spark_class, "org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0"]
        command += ["--cores", "1", "--memory", "1g", url]
        own = os.environ | {"SPARK_LOCAL_IP": host}
        subprocess.Popen(command, env=own, stderr=subprocess.DEVNULL)
    return url


def end_with_parent() -> None:
    """Nothing of the job outlives who started it, however that ended: its end closes the other end of stdin."""
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    plan: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    conf = plan["conf"]
    if conf["master"] == "standalone":
        conf["master"] = standalone()
    spark = session(**conf)
    spark.sparkContext.setLogLevel("WARN")
    spark.dataSource.register(MarkedSource)

    def count_and_write(frame: Any, batch: int) -> None:
        counted = frame.count()
        path = f"{plan['out']}/{batch}"
        frame.write.mode("overwrite").text(path)
        written = spark.read.text(path).count()
        if written != counted:
            raise RuntimeError(f"two actions on batch {batch} saw {counted} and {written} messages")

    def build() -> Any:
        frame = spark.readStream.format("sqs-marked").options(**plan["options"]).load(plan["url"])
        writer = frame.selectExpr(LINE).writeStream.option("checkpointLocation", plan["checkpoint"])
        writer = writer.trigger(processingTime=TRIGGER)
        if plan["sink"] == "actions":
            return writer.foreachBatch(count_and_write).start()
        return writer.format("text").start(plan["out"])

    run_forever(build, failures_max=FAILURES_MAX)


if __name__ == "__main__":
    main()
