"""A consumer of a consumer group as a process, by plain calls: receives from the partitions that it holds, notes each
message in a file that all consumers share, and then deletes it.

    python -m tests.system.partitions.consumer ENDPOINT GROUP FILE
"""

import os
import sys
import time
from typing import Any

from tests.system.acceptance.raw import Endpoint

VISIBILITY_S = 3


class Lost(Exception):
    """The consumer is not one of the group any more."""


class Consumer:
    def __init__(self, endpoint: str, group: str, path: str) -> None:
        self.endpoint, self.group = Endpoint(endpoint), group
        self.notes = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.view: dict[str, Any] = {}
        self.renewed_s = 0.0

    def ask(self, action: str, **members: Any) -> dict[str, Any] | None:
        """The answer, or None where the fence keeps this consumer out. Raises Lost."""
        answer = self.endpoint.json(action, members)
        if answer.status == 200:
            return dict(answer.document)
        kind = str(answer.document["__type"]).rpartition("#")[2]
        if kind == "ElasticqUnknownConsumer":
            raise Lost
        assert kind == "ElasticqNotHolder", answer.document
        return None

    def renew(self, **members: Any) -> None:
        asked_s = time.monotonic()
        action = "ElasticqHeartbeat" if members else "ElasticqJoinGroup"
        view = self.ask(action, GroupName=self.group, **members)
        assert view is not None
        self.view, self.renewed_s = view, asked_s

    def may_act(self) -> bool:
        return time.monotonic() < self.renewed_s + self.view["HoldMs"] / 1_000

    def heartbeat(self) -> None:
        """Renew the session, if that is due, and give back what is to be: nothing is under way now."""
        revoked = [each["Token"] for each in self.view["Revoking"]]
        if revoked or time.monotonic() > self.renewed_s + self.view["HeartbeatMs"] / 1_000:
            self.renew(ConsumerId=self.view["ConsumerId"], Released=revoked)

    def work(self, held: dict[str, Any]) -> int:
        """Take what there is in one partition, and return how many messages that were."""
        url = held["QueueUrl"]
        fence = {"ElasticqGroup": self.group, "ElasticqToken": held["Token"], "ElasticqPartition": held["Partition"]}
        asked = {"MaxNumberOfMessages": 10, "VisibilityTimeout": VISIBILITY_S, "WaitTimeSeconds": 0}
        names = {"MessageSystemAttributeNames": ["MessageGroupId"]}
        answer = self.ask("ReceiveMessage", QueueUrl=url, **asked, **names, **fence)
        messages = (answer or {}).get("Messages", [])
        until_s = time.monotonic() + VISIBILITY_S / 2
        for message in messages:
            if not self.may_act() or time.monotonic() > until_s:
                return 0
            line = f"{os.getpid()} {held['Partition']} {message['Attributes']['MessageGroupId']} {message['Body']}\n"
            os.write(self.notes, line.encode())
            self.ask("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], **fence)
        return len(messages)

    def run(self) -> None:
        while True:
            try:
                self.renew()
                while True:
                    self.turn()
            except Lost:
                continue

    def turn(self) -> None:
        found = 0
        for held in self.view["Assigned"]:
            self.heartbeat()
            still = {each["Token"] for each in self.view["Assigned"]}
            if held["Token"] in still and self.may_act():
                found += self.work(held)
        self.heartbeat()
        if not found:
            asked = {"KnownVersion": self.view["Version"], "WaitTimeSeconds": 1}
            self.renew(ConsumerId=self.view["ConsumerId"], **asked)


if __name__ == "__main__":
    Consumer(*sys.argv[1:]).run()
