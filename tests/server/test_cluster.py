"""The cluster's settings: what is made up, what contradicts itself, what is doubtful."""

from pathlib import Path
from typing import Any

import pytest

from elasticq.engine.stored.call_history import MEMBER_WINDOW_MS
from elasticq.model.limits import INVOCATION_WINDOW_MS
from elasticq.node.waits.waiting_calls import HELD_MS_MAX
from elasticq.server.cluster import HOLD_S_MAX, is_address, is_loopback
from elasticq.server.settings import Settings, SettingsError, load, secrets, warnings
from tests.peers.test_tls import Authority


def loaded(**cluster: Any) -> Settings:
    return load(None, {}, {"cluster": cluster})


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_bytes(b"a secret of some length\n")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize(
    ("cluster", "discovery"),
    [
        ({}, "none"),
        ({"nodes": 3}, "zeroconf"),
        ({"nodes": 3, "seeds": ["a:1"]}, "seeds"),
        ({"seeds": "a:1"}, "seeds"),
        ({"seeds": ["a:1"], "discovery": "zeroconf"}, "zeroconf"),
        ({"nodes": 3, "discovery": "seeds"}, "seeds"),
        ({"nodes": 1, "discovery": "zeroconf"}, "zeroconf"),
    ],
)
def test_discovery_that_nobody_named_follows_from_nodes_and_seeds(cluster: dict[str, Any], discovery: str) -> None:
    assert loaded(**cluster).cluster.discovery == discovery


def test_seeds_come_as_one_text_from_the_environment_and_as_a_list_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    file.write_text('[cluster]\nseeds = ["10.0.0.1:9326", "[::1]:9326"]\n')
    assert load(file, {}, {}).cluster.seeds == ["10.0.0.1:9326", "[::1]:9326"]
    environment = {"ELASTICQ_CLUSTER__SEEDS": "a:1, b:2,"}
    assert load(file, environment, {}).cluster.seeds == ["a:1", "b:2"]
    assert load(file, environment, {"cluster": {"seeds": ""}}).cluster.seeds == []


@pytest.mark.parametrize(
    ("cluster", "told"),
    [
        ({"nodes": 3, "discovery": "none"}, "but discovery is none: set seeds"),
        ({"seeds": "a:1", "discovery": "none"}, "would ignore cluster.seeds"),
        ({"seeds": "a"}, "'a' is not host:port"),
        ({"seeds": "a:1,b:0"}, "'b:0' is not host:port"),
        ({"advertise": "10.0.0.1"}, "cluster.advertise: '10.0.0.1' is not host:port"),
        ({"nodes": 3, "peer_host": "0.0.0.0"}, "admits other machines: set cluster.secret_file"),
        ({"nodes": 3, "peer_host": "node1.lan"}, "admits other machines"),
        ({"role": "proxi", "seeds": "a:1"}, "cluster.role proxi is not one of member, proxy"),
        ({"role": "proxy"}, "role proxy must find its cluster: set seeds"),
        ({"role": "proxy", "discovery": "seeds"}, "role proxy must find its cluster: set seeds"),
        ({"role": "proxy", "seeds": "a:1", "nodes": 3}, "does not form a cluster: remove cluster.nodes 3"),
        ({"role": "proxy", "seeds": "a:1", "advertise": "b:1"}, "remove cluster.advertise"),
        ({"tls_cert": __file__}, "needs cluster.tls_key and cluster.tls_ca too"),
        ({"tls_cert": "none", "tls_key": __file__, "tls_ca": __file__}, "cluster.tls_cert none cannot be read"),
    ],
)
def test_contradictions_are_refused_with_what_to_do(cluster: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        loaded(**cluster)


def test_all_contradictions_are_told_at_once() -> None:
    with pytest.raises(SettingsError, match=r"'a' is not host:port.*; .*'b' is not host:port"):
        loaded(seeds="a,b")


@pytest.mark.parametrize(
    ("content", "mode", "told"),
    [
        (b"", 0o600, "is empty"),
        (b" \n", 0o600, "is empty"),
        (b"x" * 4_097, 0o600, "longer than 4096 bytes"),
        (b"a secret", 0o644, "chmod 600"),
        (b"a secret", 0o602, "chmod 600"),
        (b"a secret", 0o660, "chmod 600"),
        (b"a secret", 0o620, "chmod 600"),
    ],
)
def test_a_secret_file_that_protects_nothing_is_refused(
    secret_file: Path, content: bytes, mode: int, told: str
) -> None:
    secret_file.write_bytes(content)
    secret_file.chmod(mode)
    with pytest.raises(SettingsError, match=told):
        loaded(secret_file=str(secret_file))


def test_a_missing_secret_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        loaded(secret_file=str(tmp_path / "none"))


def test_a_secret_opens_the_peer_port_to_other_machines(secret_file: Path) -> None:
    settings = loaded(nodes=3, peer_host="0.0.0.0", secret_file=str(secret_file))
    assert secrets(settings) == (b"a secret of some length", b"")
    assert warnings(settings) == []


def test_second_secret_is_that_of_the_file_beside_the_first(secret_file: Path) -> None:
    settings = loaded(nodes=3, peer_host="::", secret_file=str(secret_file))
    also = Path(f"{secret_file}.also")
    also.write_text("the next secret\n")
    also.chmod(0o600)
    assert secrets(settings) == (b"a secret of some length", b"the next secret")
    also.chmod(0o644)
    with pytest.raises(SettingsError, match=r"secret\.also is open to other users"):
        secrets(settings)
    with pytest.raises(SettingsError, match=r"secret\.also is open to other users"):
        loaded(nodes=3, peer_host="::", secret_file=str(secret_file))


def test_tls_opens_the_peer_port_to_other_machines(tmp_path: Path) -> None:
    files = Authority(tmp_path, "one").settings("a")
    assert secrets(loaded(nodes=3, peer_host="::", **files)) == (b"", b"")


def test_files_that_are_no_certificates_are_found_before_the_start(secret_file: Path) -> None:
    with pytest.raises(SettingsError, match=r"TLS files .*secret"):
        loaded(nodes=3, **dict.fromkeys(("tls_cert", "tls_key", "tls_ca"), str(secret_file)))


def test_a_secret_file_that_went_away_is_told(secret_file: Path) -> None:
    settings = loaded(secret_file=str(secret_file))
    secret_file.unlink()
    for use in (secrets, warnings):
        with pytest.raises(SettingsError, match="cannot be read"):
            use(settings)


def test_doubtful_settings_are_warned_of(secret_file: Path) -> None:
    assert warnings(loaded(nodes=3)) == []
    assert warnings(loaded(nodes=4)) == ["4 nodes survive no more failures than 3: use an odd number"]
    assert warnings(loaded(nodes=3, seeds="127.0.0.1:1,[::1]:2")) == []
    assert "cannot reach cluster.peer_host" in warnings(loaded(nodes=3, seeds="10.0.0.1:1"))[0]
    assert warnings(loaded(nodes=3, seeds="10.0.0.1:1", advertise="10.0.0.2:1")) == []
    secret_file.write_bytes(b"short")
    assert "easy to guess" in warnings(loaded(secret_file=str(secret_file)))[0]


@pytest.mark.parametrize("text", ["a:1", "10.0.0.1:65535", "[::1]:9326", "node-1.lan:9326"])
def test_host_and_port_are_an_address(text: str) -> None:
    assert is_address(text)


@pytest.mark.parametrize(
    "text", ["", "a", ":1", "a:", "a:0", "a:65536", "a:+1", "a:1_0", "::1:9326", "[x]:1", "a b:1", "u@a:1", "a/b:1"]
)
def test_what_else_is_no_address(text: str) -> None:
    assert not is_address(text)


def test_only_this_machine_is_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "node1", "localhost.example")))


@pytest.mark.parametrize("storage", [{"data_dir": "elsewhere"}, {"memory": True}, {"durability": "os"}])
def test_a_proxy_that_shall_store_something_is_refused(storage: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"role proxy stores nothing: remove the settings of .storage."):
        load(None, {}, {"cluster": {"role": "proxy", "seeds": "a:1"}, "storage": storage})


def test_a_proxy_listens_for_nobody_so_its_peer_host_needs_no_secret_and_raises_no_doubt() -> None:
    settings = loaded(role="proxy", seeds="10.0.0.1:9326", peer_host="0.0.0.0")
    assert settings.cluster.discovery == "seeds"
    assert warnings(settings) == []
    assert warnings(loaded(role="proxy", seeds="10.0.0.1:9326")) == []


def test_proxies_without_a_name_of_their_own_get_different_ones() -> None:
    """Two processes of one name cannot both live, and one program after another gets its proxy."""
    names = [loaded(role="proxy", seeds="a:1").node.id for _ in range(2)]
    assert names[0] != names[1]
    assert all(name.startswith("proxy-") for name in names)
    named = load(None, {}, {"cluster": {"role": "proxy", "seeds": "a:1"}, "node": {"id": "web1"}})
    assert named.node.id == "web1"
    assert loaded(seeds="a:1").node.id == "node1"


def test_no_hold_that_can_be_set_outlasts_what_is_remembered_of_calls() -> None:
    """A plain SDK makes three tries and waits up to 60 s for the answer of each."""
    with pytest.raises(SettingsError, match="hold_s"):
        loaded(hold_s=HOLD_S_MAX + 1)
    assert 3 * max(1_000 * HOLD_S_MAX, 60_000) + 15_000 < INVOCATION_WINDOW_MS
    assert 1_000 * HOLD_S_MAX <= HELD_MS_MAX < MEMBER_WINDOW_MS
