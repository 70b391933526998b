"""Any member's first page names what is wrong, with its cause, within ten seconds, and until it is fixed."""

from tests.system.cluster.cluster import Cluster
from tests.system.cluster.incidents import QUEUES, MemberDead, attention, check_gone, check_named, page


def test_the_first_page_names_incidents_of_queues_and_a_dead_member_until_they_are_fixed(cluster: Cluster) -> None:
    assert [attention(member) for member in cluster.running()] == [[], [], []]
    assert "Nothing. All members answer" in page(cluster.running()[0])
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
