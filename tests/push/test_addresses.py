"""Which addresses a notification may be sent to."""

import pytest

from elasticq.push.addresses import REFUSED, AddressRefused, Guard, unreadable


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


@pytest.mark.parametrize("text", ["127.1", "2852039166", "0x7f.1", "", "localhost", "1.2.3.4.5"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressRefused, match="no address"):
        Guard([]).check(text, 80)


def test_texts_that_are_no_networks_are_named() -> None:
    assert unreadable([*REFUSED, "10.0.0.1/8", "x"]) == ["10.0.0.1/8", "x"]
