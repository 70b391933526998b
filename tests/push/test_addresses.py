"""Which addresses a notification may be sent to."""

import socket

import pytest

from elasticq.push.addresses import REFUSED, AddressRefused, Guard, Listeners, addresses_of, unreadable


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "255.255.255.255",
        "::ffff:169.254.169.254",
        "2002:a9fe:a9fe::1",
        "64:ff9b::a9fe:a9fe",
    ],
)
def test_addresses_that_give_credentials_or_reach_many_are_refused(address: str) -> None:
    with pytest.raises(AddressRefused, match="refused_networks"):
        Guard(REFUSED).check(address, 80)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "8.8.8.8", "2606:4700::1111"])
def test_other_addresses_are_allowed(address: str) -> None:
    Guard(REFUSED).check(address, 80)


def test_what_the_settings_list_is_refused_and_nothing_else() -> None:
    guard = Guard(["10.0.0.0/8"])
    guard.check("169.254.169.254", 80)
    with pytest.raises(AddressRefused):
        guard.check("10.1.2.3", 80)
    with pytest.raises(AddressRefused):
        guard.check("::ffff:10.1.2.3", 80)


def test_ports_of_operators_and_members_are_refused_at_any_address() -> None:
    guard = Guard([], [9325, 9326])
    guard.check("127.0.0.1", 9324)
    for port in (9325, 9326):
        with pytest.raises(AddressRefused, match="operators"):
            guard.check("127.0.0.1", port)


def own_address() -> str:
    """An address of this machine other than loopback's, or loopback's where there is none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


ELSEWHERE = "192.0.2.1"  # of documentation: no machine's


def listening() -> Listeners:
    return Listeners(frozenset([9325]), frozenset([9324]), addresses_of(["10.0.0.2", "::ffff:10.0.0.3", "elasticq-0"]))


@pytest.mark.parametrize("address", ["10.0.0.2", ELSEWHERE, "127.0.0.1", "2606:4700::1111"])
def test_a_port_of_operators_or_members_of_the_cluster_is_refused_at_any_address(address: str) -> None:
    with pytest.raises(AddressRefused, match="operators"):
        Guard([], listeners=listening).check(address, 9325)


@pytest.mark.parametrize(
    "address",
    ["10.0.0.2", "::ffff:10.0.0.2", "64:ff9b::a00:2", "10.0.0.3", "127.0.0.1", "127.0.0.5", "::1", "0.0.0.0", "::"],
)
def test_an_sqs_port_is_refused_on_this_machine_and_on_those_of_the_cluster(address: str) -> None:
    guard = Guard([], listeners=listening)
    with pytest.raises(AddressRefused, match="SQS port"):
        guard.check(address, 9324)
    with pytest.raises(AddressRefused, match="SQS port"):
        guard.check(own_address(), 9324)
    guard.check(address, 4566)


def test_a_web_server_elsewhere_may_have_the_number_of_an_sqs_port() -> None:
    for address in (ELSEWHERE, "10.0.0.4", "2606:4700::1111"):
        Guard([], listeners=listening).check(address, 9324)


def test_what_the_cluster_listens_on_is_asked_each_time() -> None:
    known: list[Listeners] = [Listeners()]
    guard = Guard([], listeners=lambda: known[-1])
    guard.check("127.0.0.1", 9325)
    known.append(listening())
    with pytest.raises(AddressRefused):
        guard.check("127.0.0.1", 9325)


@pytest.mark.parametrize("text", ["127.1", "2852039166", "0x7f.1", "", "localhost", "1.2.3.4.5"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressRefused, match="is not an IP address"):
        Guard([]).check(text, 80)


def test_texts_that_are_no_networks_are_named() -> None:
    assert unreadable([*REFUSED, "10.0.0.1/8", "x"]) == ["10.0.0.1/8", "x"]
