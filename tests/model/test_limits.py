"""Limits that depend on each other."""

from elasticq.model import limits


def test_defaults_lie_inside_their_ranges() -> None:
    assert 0 <= limits.DELAY_S_DEFAULT <= limits.DELAY_S_MAX
    assert 0 <= limits.VISIBILITY_S_DEFAULT <= limits.VISIBILITY_S_MAX
    assert 0 <= limits.WAIT_S_DEFAULT <= limits.WAIT_S_MAX
    assert limits.RETENTION_S_MIN <= limits.RETENTION_S_DEFAULT <= limits.RETENTION_S_MAX
    assert limits.KMS_REUSE_S_MIN <= limits.KMS_REUSE_S_DEFAULT <= limits.KMS_REUSE_S_MAX


def test_a_request_holds_the_largest_legal_batch_however_it_is_escaped() -> None:
    assert limits.REQUEST_BYTES_MAX >= 6 * limits.BODY_BYTES_MAX  # \u0041 is six bytes for one


def test_a_batch_fits_into_one_mutation() -> None:
    assert limits.BATCH_ENTRIES_MAX <= limits.MUTATION_ROWS_MAX
    assert limits.RECEIVE_MESSAGES_MAX <= limits.MUTATION_ROWS_MAX
