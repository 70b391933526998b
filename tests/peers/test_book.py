"""The book keeps the newest address per member, forgets hearsay, and stays small."""

from elasticq.peers.book import ENTRIES_MAX, RUMOUR_S, Book
from elasticq.peers.messages import KNOWN_MAX, Known


def test_a_greeting_overrules_hearsay_and_not_the_other_way() -> None:
    book = Book()
    book.heard((Known("a", "old:1"),), 0)
    book.met("a", "new:1", 1)
    book.heard((Known("a", "old:1"),), 2)
    assert book.address("a") == "new:1"


def test_a_new_member_at_an_address_takes_it_over() -> None:
    book = Book()
    book.met("a-1", "host:1", 0)
    book.met("a-2", "host:1", 1)
    assert book.members() == ["a-2"]


def test_addresses_that_cannot_be_dialled_are_not_kept() -> None:
    book = Book()
    book.met("a", "0.0.0.0:9326", 0)
    book.heard((Known("b", "host"), Known("c", "host:0"), Known("d", "")), 0)
    assert book.addresses() == set()


def test_hearsay_is_not_passed_on_and_fades() -> None:
    book = Book()
    book.met("a", "a:1", 0)
    book.heard((Known("b", "b:1"),), 0)
    assert [known.id for known in book.told(set(), 1)] == ["a"]
    book.forget_rumours(RUMOUR_S + 1)
    assert book.members() == ["a"]
    assert book.told(set(), RUMOUR_S + 1) == ()
    assert book.told({"a"}, RUMOUR_S + 1) == (Known("a", "a:1"),)


def test_the_book_and_a_greeting_have_bounds() -> None:
    book = Book()
    book.met("met", "met:1", 0)
    for number in range(2 * ENTRIES_MAX):
        book.heard((Known(f"m{number}", f"m:{number + 1}"),), number)
    assert len(book.members()) == ENTRIES_MAX
    assert book.address("met") == "met:1"
    for number in range(KNOWN_MAX + 5):
        book.met(f"m{number}", f"m:{number + 1}", 10_000)
    assert len(book.told({"met"}, 10_000)) == KNOWN_MAX
    assert book.told({"met"}, 10_000)[0].id == "met"
