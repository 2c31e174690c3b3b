import torch

from data.photos import listed
from unspur.data.base import Split
from unspur.data.images.cache import MappedImages
from unspur.data.shortcuts.drawn_images import DrawnImages


def drawn(cache, root):
    """Images in whose first pixel their number stands."""

    def draw(images, numbers):
        new = images.clone()
        new[:, :, 0, 0] = numbers[:, None].to(torch.uint8)
        return new

    source = MappedImages.of(cache, cache.fill(listed(root)).rows)
    return source, DrawnImages(source, draw)


def test_drawing_happens_as_images_are_read_and_leaves_the_source_alone(cache, root):
    source, images = drawn(cache, root)
    index = torch.tensor([5, 3])
    before = source[index]
    assert images[index][:, 0, 0, 0].tolist() == [5, 3] and images.shape == source.shape
    assert torch.equal(images[index][..., 1:], before[..., 1:]) and torch.equal(source[index], before)


def test_an_image_keeps_its_number_in_every_part(cache, root):
    split = Split(drawn(cache, root)[1], torch.arange(40)).subset(torch.arange(39, -1, -1)).subset(torch.tensor([1, 9]))
    assert split.x[torch.arange(2)][:, 0, 0, 0].tolist() == [38, 30]
    batches = [(batch.x[:, 0, 0, 0] * 255).round().tolist() for batch in split.batches([torch.tensor([1, 0])])]
    assert batches == [[30, 38]] and split.y.tolist() == [38, 30]
