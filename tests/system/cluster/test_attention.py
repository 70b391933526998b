"""Any member's first page names what is wrong, with its cause, within ten seconds, and until it is fixed."""

import threading
from typing import Any

from tests.system.cluster.cluster import HOST, Cluster, Member, ask, until
from tests.system.cluster.incidents import QUEUES, MemberDead, attention, check_gone, check_named, page


def test_the_first_page_names_incidents_of_queues_and_a_dead_member_until_they_are_fixed(cluster: Cluster) -> None:
    # A process of another test may have dialled a port that the kernel gave away again. Its refusal is shown for 10 s.
    until(lambda: not any(attention(member) for member in cluster.running()), "nothing needs attention")
    until(lambda: "Nothing. All members answer" in page(cluster.running()[0]), "the page says so")
    incidents = [make() for make in QUEUES]
    for incident in incidents:
        incident.stage(cluster)
    print(check_named(cluster, incidents))
    dead = MemberDead()
    dead.stage(cluster)
    print(check_named(cluster, [dead, *incidents]))
    for each in (dead, *incidents):
        each.fix(cluster)
    check_gone(cluster, [dead, *incidents])


def test_any_member_shows_a_receive_with_its_client_also_after_the_mastership_moved(cluster: Cluster) -> None:
    follower = cluster[cluster.followers()[0]]
    follower.call("CreateQueue", QueueName="awaited")
    begun = threading.Thread(target=follower.ask, args=("ReceiveMessage",), kwargs=WAITED)
    begun.start()
    check_waiting(cluster, "awaited", follower.name)
    cluster.operate("transfer")
    check_waiting(cluster, "awaited", follower.name)
    follower.call("SendMessage", QueueUrl="awaited", MessageBody="x")
    begun.join()
    until(lambda: not any(waiting(member) for member in cluster.running()), "nothing waits")


def test_events_of_all_members_are_shown_by_any_member(cluster: Cluster) -> None:
    cluster[cluster.followers()[0]].call("CreateQueue", QueueName="purged")
    cluster[cluster.followers()[0]].call("PurgeQueue", QueueUrl="purged")
    for member in cluster.running():
        told = ask(member.admin_port, "GET", "/cluster/events").body["events"]
        assert [each["member"] for each in told if each["event"] == "queue_purged"] == [cluster.followers()[0]]
        assert {name for each in told for name in each["member"].split(", ")} == set(cluster.names())
        times = [each["time_ms"] for each in told]
        assert times == sorted(times, reverse=True)


def test_a_healthy_start_logs_no_warning(cluster: Cluster) -> None:
    for member in cluster.running():
        lines = [line for line in member.log.read_text().splitlines() if "peer_connection_closed" not in line]
        assert [line for line in lines if " WARNING " in line or " ERROR " in line] == []


WAITED = {"QueueUrl": "awaited", "WaitTimeSeconds": 20}


def waiting(member: Member) -> list[dict[str, Any]]:
    return list(ask(member.admin_port, "GET", "/api/waiting").body["waiting"])


def check_waiting(cluster: Cluster, queue: str, through: str) -> None:
    """Wait until each member shows one receive of the queue, through this member, with the client's address."""

    def shown() -> bool:
        seen = [
            [(each["queue"], each["member"], each["address"]) for each in waiting(one)] for one in cluster.running()
        ]
        return seen == [[(queue, through, HOST)]] * len(cluster.running())

    until(shown, f"a receive waits at {queue}")
