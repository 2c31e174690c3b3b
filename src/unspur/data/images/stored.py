"""The pixels of listed images: kept decoded in the cache, or decoded each time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unspur.core.memory import require_memory
from unspur.data.images.cache import Cache, MappedImages
from unspur.data.images.decode import SquareFit
from unspur.data.images.listing import Listing
from unspur.data.images.on_demand import ImagesOnDemand
from unspur.errors import UnspurError, require

NAMED = 5  # broken files or duplicates that a sentence names; it counts the rest


def stored_images(
    listing: Listing, cache_dir: Path, size: int, fit: SquareFit, *, skip_broken: bool, on_demand: bool
) -> tuple[Listing, MappedImages | ImagesOnDemand, Sequence[bytes]]:
    """The images that can be decoded, a source of their pixels, and a hash of each one's content.

    Images that cannot be decoded raise an error that names and counts them; with ``skip_broken`` they are left out and
    noted.
    """
    require_memory(2 * 3 * 4 * size**2, f"Two images of {size:,} x {size:,} pixels", "lower data.size")
    cache = Cache(cache_dir, listing.root, size, fit, pixels=not on_demand)
    filled = cache.fill(listing.files)
    rows, content = filled.rows, filled.content
    if filled.problems:
        problems = [f"{listing.place(number)} {problem}" for number, problem in filled.problems.items()]
        count = f"{len(problems):,} of {len(listing):,} images"
        if not skip_broken:
            raise UnspurError(
                f"{count} in {listing.root} cannot be used: {some_of(problems)}; fix or remove them, or go on without "
                "them with --set data.skip_broken=true."
            )
        whole = (rows >= 0).nonzero()[0]
        require(
            len(whole) > 0, f"None of the {len(listing):,} images in {listing.root} can be used: {some_of(problems)}."
        )
        rows, content = rows[whole], content[whole]
        listing = listing.only(whole.tolist(), f"{count} could not be used and were left out: {some_of(problems)}.")
    images = (
        ImagesOnDemand(listing.root, [file.name for file in listing.files], size, fit)
        if on_demand
        else MappedImages.of(cache, rows)
    )
    return listing, images, content.tolist()


def some_of(sentences: Sequence[str]) -> str:
    """The first few sentences, and how many more there are."""
    more = len(sentences) - NAMED
    return "; ".join([*sentences[:NAMED], *([f"and {more:,} more"] if more > 0 else [])])
