"""The kustomize base: every manifest is one of Kubernetes', all of them fit together, and the server takes its part.

The base uses no transformer, so rendering it is reading what it lists.
"""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from elasticq import __version__
from elasticq.cli.follow_master import CREDENTIALS, LABEL, MASTER
from elasticq.cli.main import _parser
from elasticq.server.secret_files import refused_mode
from elasticq.server.settings import Settings, load, warnings

HERE = Path(__file__).resolve().parent
BASE = HERE.parents[2] / "deploy" / "kubernetes"
SCHEMA = jsonschema.Draft202012Validator(json.loads((HERE / "kubernetes.schema.json").read_text()))

Manifest = dict[str, Any]


def render() -> Iterator[Manifest]:
    customization = yaml.safe_load((BASE / "kustomization.yaml").read_text())
    assert set(customization) == {"apiVersion", "kind", "resources"}, "this test renders resources only"
    assert sorted(customization["resources"]) == sorted(
        path.name for path in BASE.iterdir() if path.name != "kustomization.yaml"
    )
    for name in customization["resources"]:
        yield from yaml.safe_load_all((BASE / name).read_text())


MANIFESTS = list(render())


def one(kind: str, name: str) -> Manifest:
    (found,) = (each for each in MANIFESTS if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


SET = one("StatefulSet", "elasticq")
POD = SET["spec"]["template"]
SERVER, SIDECAR = POD["spec"]["containers"]


def variables(container: Manifest) -> dict[str, str]:
    """As the kubelet gives them to the first pod: $(NAME) of those that come before is replaced."""
    fields = {"metadata.name": "elasticq-0", "metadata.namespace": "queues", "status.podIP": "10.1.2.3"}
    found: dict[str, str] = {}
    for variable in container["env"]:
        value = variable["value"] if "value" in variable else fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        found[variable["name"]] = expand(value, found)
    return found


def expand(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda match: values[match[1]], text)


def offences(manifest: Manifest) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in SCHEMA.iter_errors(manifest)]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_manifest_is_one_that_kubernetes_takes(manifest: Manifest) -> None:
    assert offences(manifest) == []


def test_misspelt_field_is_found() -> None:
    wrong = copy.deepcopy(SET)
    wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    assert any("readynessProbe" in offence for offence in offences(wrong))
    wrong = copy.deepcopy(SET)
    del wrong["spec"]["serviceName"]
    assert offences(wrong) != []


def test_no_two_manifests_have_one_name() -> None:
    names = [(each["kind"], each["metadata"]["name"]) for each in MANIFESTS]
    assert len(set(names)) == len(names)


def test_services_and_budget_select_the_pods_of_the_set() -> None:
    labels = POD["metadata"]["labels"]
    assert SET["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert one("PodDisruptionBudget", "elasticq")["spec"]["selector"]["matchLabels"].items() <= labels.items()
    for name in ("elasticq", "elasticq-peers"):
        assert one("Service", name)["spec"]["selector"].items() <= labels.items()


def test_services_lead_to_ports_that_the_server_has() -> None:
    ports = {port["name"]: port["containerPort"] for port in SERVER["ports"]}
    for service in (each for each in MANIFESTS if each["kind"] == "Service"):
        for port in service["spec"]["ports"]:
            assert port["port"] == ports[port["targetPort"]]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert SERVER[probe]["httpGet"]["port"] in ports


def test_members_are_found_by_name_before_they_are_ready() -> None:
    peers = one("Service", SET["spec"]["serviceName"])["spec"]
    assert (peers["clusterIP"], peers["publishNotReadyAddresses"]) == ("None", True)
    assert SET["spec"]["podManagementPolicy"] == "Parallel", "three found a cluster together"


def test_master_service_selects_what_the_sidecar_sets() -> None:
    selector = one("Service", "elasticq-master")["spec"]["selector"]
    assert selector == POD["metadata"]["labels"] | {LABEL: MASTER}
    assert LABEL not in POD["metadata"]["labels"], "a new pod is not the master"


def test_sidecar_may_patch_the_pods_of_the_set_and_nothing_else() -> None:
    (rule,) = one("Role", "elasticq-follow-master")["rules"]
    replicas = SET["spec"]["replicas"]
    assert rule == {
        "apiGroups": [""],
        "resources": ["pods"],
        "resourceNames": [f"elasticq-{number}" for number in range(replicas)],
        "verbs": ["patch"],
    }
    binding = one("RoleBinding", "elasticq-follow-master")
    account = one("ServiceAccount", POD["spec"]["serviceAccountName"])
    assert [subject["name"] for subject in binding["subjects"]] == [account["metadata"]["name"]]
    assert binding["roleRef"]["name"] == "elasticq-follow-master"


def test_token_is_mounted_into_the_sidecar_alone() -> None:
    assert POD["spec"]["automountServiceAccountToken"] is False
    volumes = {volume["name"]: volume for volume in POD["spec"]["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in SIDECAR["volumeMounts"]}
    assert mounts == {"token": str(CREDENTIALS)}
    files = {
        path
        for source in volumes["token"]["projected"]["sources"]
        for path in (
            [source["serviceAccountToken"]["path"]]
            if "serviceAccountToken" in source
            else [item["path"] for item in source["configMap"]["items"]]
        )
    }
    assert files == {"token", "ca.crt"}
    assert "token" not in {mount["name"] for mount in SERVER["volumeMounts"]}


def test_mounts_name_volumes_and_volumes_are_mounted() -> None:
    volumes = {volume["name"] for volume in POD["spec"]["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in SET["spec"]["volumeClaimTemplates"]}
    mounted = {mount["name"] for container in (SERVER, SIDECAR) for mount in container["volumeMounts"]}
    assert mounted == volumes


def test_sidecar_arguments_are_ones_of_the_command() -> None:
    values = variables(SIDECAR)
    options = _parser().parse_args([expand(argument, values) for argument in SIDECAR["args"]])
    assert options.admin == "http://10.1.2.3:9325"
    assert {"POD_NAME", "POD_NAMESPACE"} <= set(values)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of the first pod, with its secret."""
    values = variables(SERVER)
    for name in ("ELASTICQ_ADMIN__TOKEN_FILE", "ELASTICQ_CLUSTER__SECRET_FILE"):
        directory, _, file = values[name].rpartition("/")
        assert directory in {mount["mountPath"] for mount in SERVER["volumeMounts"]}
        path = tmp_path / file
        path.write_text("long-enough-to-be-a-secret")
        path.chmod(0o600)
        values[name] = str(path)
    return load(None, values, {})


def test_server_takes_its_settings(settings: Settings) -> None:
    """But for one: who reaches the service may use it, until auth is strict."""
    assert [warning[:20] for warning in warnings(settings)] == ["THE SQS PORT IS OPEN"]
    assert settings.node.id == "elasticq-0"
    assert settings.cluster.nodes == SET["spec"]["replicas"]
    assert settings.storage.data_dir in {mount["mountPath"] for mount in SERVER["volumeMounts"]}
    ports = {port["name"]: port["containerPort"] for port in SERVER["ports"]}
    assert ports == {"sqs": settings.http.port, "admin": settings.admin.port, "peers": settings.cluster.peer_port}


def test_secret_is_mounted_as_the_server_wants_it() -> None:
    (secret,) = (volume["secret"] for volume in POD["spec"]["volumes"] if "secret" in volume)
    assert secret["defaultMode"] == 0o440
    assert secret["defaultMode"] & refused_mode(0, POD["spec"]["securityContext"]["runAsUser"]) == 0


def test_members_go_by_the_names_that_the_headless_service_gives(settings: Settings) -> None:
    service, replicas = SET["spec"]["serviceName"], SET["spec"]["replicas"]
    addresses = [f"elasticq-{number}.{service}:9326" for number in range(replicas)]
    assert settings.cluster.seeds == addresses
    assert settings.cluster.advertise == addresses[0]


def test_eviction_leaves_a_majority() -> None:
    budget = one("PodDisruptionBudget", "elasticq")["spec"]
    assert SET["spec"]["replicas"] - budget["maxUnavailable"] > SET["spec"]["replicas"] / 2


def test_containers_are_of_this_version_and_may_do_little() -> None:
    assert POD["spec"]["securityContext"]["runAsNonRoot"] is True
    for container in (SERVER, SIDECAR):
        assert container["image"] == f"elasticq:{__version__}"
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    text = (BASE.parent / "container" / "Containerfile").read_text()
    assert f"USER {POD['spec']['securityContext']['runAsUser']}:{POD['spec']['securityContext']['fsGroup']}" in text
