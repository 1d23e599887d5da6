"""How large the images are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from images import measuring
from images.running import Unpacked

pytestmark = pytest.mark.image


# The operator's image has the sampler, too, which rolls up hours with numpy.
@pytest.mark.parametrize(("target", "limit"), [("operator", 410), ("spark", 1200)])
def test_an_image_is_no_larger_than_it_was(images: Callable[[str], Unpacked], target: str, limit: int) -> None:
    found = measuring.sizes(images(target).image)
    measuring.note(target, size=found)
    assert found["unpacked_mebibytes"] < limit
