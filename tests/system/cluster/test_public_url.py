"""admin.public_url: the URL that members show for each other, where loopback leads nowhere."""

from pathlib import Path
from typing import Any

from elasticq.client import Sns
from tests.system.cluster.cluster import HOST, Cluster, ask, until


def url_of(name: str) -> str:
    return f"https://{name}.ops.example"


def whole(page: dict[str, Any]) -> dict[str, Any] | None:
    """The page, if all members on it have introduced themselves."""
    return page if all(row["admin"] for row in page.get("members", [{"admin": ""}])) else None


def test_members_show_each_other_s_public_url(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    for name, member in cluster.members.items():
        cluster.environment = {"ELASTICQ_ADMIN__PUBLIC_URL": url_of(name)}
        member.start()
    try:
        cluster.wait_ready()
        master = cluster[cluster.master()]
        for member in cluster.members.values():
            page = until(lambda member=member: whole(member.status()), f"{member.name} has met all")
            assert {row["name"]: row["admin"] for row in page["members"]} == {
                each: url_of(each) for each in cluster.names()
            }
            assert page["master_admin"] == url_of(master.name)
        own = {"Host": f"{master.name}.ops.example", "Sec-Fetch-Site": "same-origin"}
        assert ask(master.admin_port, "GET", "/cluster", headers=own).status == 200
        foreign = {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"}
        assert ask(master.admin_port, "GET", "/cluster", headers=foreign).status == 403
        printed = cluster.operate("status", by=cluster.followers()[0])
        assert url_of("n3") in printed
        # The ports themselves stay refused to notifications, although no URL names them.
        with Sns(f"http://{HOST}:{master.port}", "us-east-1") as sns:
            topic = sns.create_topic(Name="news")["TopicArn"]
            for member in cluster.members.values():
                sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=f"http://{HOST}:{member.admin_port}/")
        until(lambda: master.said().count("is a port of this cluster's operators or members") == 3, "all are refused")
    finally:
        cluster.end()
