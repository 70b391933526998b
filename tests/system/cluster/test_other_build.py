"""A member of an incompatible build gets no link, and its /ready says why; the others go on."""

from tests.system.cluster.cluster import Cluster, ask, until


def test_member_of_another_build_is_refused_and_says_so(cluster: Cluster) -> None:
    odd = cluster.followers()[0]
    assert cluster.stop(odd) == 0
    cluster[odd].module = "tests.system.cluster.other_build"
    cluster[odd].start()
    cluster[odd].until_up()
    reason = until(
        lambda: (
            (text := ask(cluster[odd].admin_port, "GET", "/ready").body.get("text", "")) and "build" in text and text
        ),
        "the reason is known",
    )
    assert "run the same build on all members" in reason
    assert ask(cluster[odd].port, "GET", "/ready").status == 503
    master = cluster.master()
    cluster[master].call("CreateQueue", QueueName="jobs")
    assert "refused_frame" not in cluster[master].said()
