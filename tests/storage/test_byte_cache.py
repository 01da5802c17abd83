"""The cache that is bounded in bytes."""

from __future__ import annotations

from lakeview.storage.byte_cache import ByteBoundedCache


def test_the_least_recently_used_values_make_room() -> None:
    cache: ByteBoundedCache[str, bytes] = ByteBoundedCache(10, len)
    cache.put("a", b"1234")
    cache.put("b", b"1234")
    assert cache.get("a") == b"1234"  # now "b" is the one not used for longest
    cache.put("c", b"1234")
    assert [cache.get(key) for key in "abc"] == [b"1234", None, b"1234"]
    assert (cache.size, len(cache)) == (8, 2)


def test_a_value_that_is_replaced_counts_once() -> None:
    cache: ByteBoundedCache[str, bytes] = ByteBoundedCache(10, len)
    cache.put("a", b"12345678")
    cache.put("a", b"12")
    assert (cache.get("a"), cache.size, len(cache)) == (b"12", 2, 1)


def test_the_newest_value_stays_however_large_it_is() -> None:
    cache: ByteBoundedCache[str, bytes] = ByteBoundedCache(10, len)
    cache.put("a", b"12")
    cache.put("b", b"x" * 100)
    assert (cache.get("a"), cache.get("b"), cache.size) == (None, b"x" * 100, 100)


def test_values_that_grow_are_measured_again() -> None:
    cache: ByteBoundedCache[str, list[int]] = ByteBoundedCache(10, len, growing=True)
    first: list[int] = []
    cache.put("a", first)
    first.extend(range(9))
    cache.put("b", [1, 2])
    assert (cache.get("a"), cache.get("b"), cache.size) == (None, [1, 2], 2)
