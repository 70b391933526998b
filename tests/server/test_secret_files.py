"""Who may read a file that holds a secret."""

import pytest

from elasticq.server.secret_files import refused_mode


@pytest.mark.parametrize(
    ("owner", "user", "refused"),
    [
        (1000, 1000, 0o077),
        (1001, 1000, 0o077),
        (0, 0, 0o077),
        (0, 1000, 0o037),  # as Kubernetes mounts secrets: root's, readable by the pod's group
    ],
)
def test_root_may_hand_a_secret_to_a_group(owner: int, user: int, refused: int) -> None:
    assert refused_mode(owner, user) == refused
