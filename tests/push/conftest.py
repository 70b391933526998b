import pytest

from elasticq.push.signer import Signer


@pytest.fixture(scope="session")
def signer() -> Signer:
    """A signer for all tests, as its key takes some tenths of a second to make."""
    return Signer(b"k" * 32)
