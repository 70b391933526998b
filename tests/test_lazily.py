"""A package's names come from its modules when they are first used, and its other names not at all."""

import pytest

from elasticq import lazily


def test_a_name_is_imported_once_and_stays_in_the_package() -> None:
    package = {"__name__": "xml"}
    get, all_names = lazily.names(package, {"Element": "etree.ElementTree"})
    assert all_names() == ["Element", "__name__"]
    found = get("Element")
    assert found.__name__ == "Element"
    assert package["Element"] is found


def test_a_name_that_no_module_has_is_told_as_python_does() -> None:
    get, _ = lazily.names({"__name__": "xml"}, {})
    with pytest.raises(AttributeError, match="module 'xml' has no attribute 'nothing'"):
        get("nothing")
