# SPDX-License-Identifier: Apache-2.0
"""loader_jpeg and augment_* with torchvision's transforms on Pillow's images: what programs in PyTorch are written with.

The images are those of benchmarks/harness/image_folder.cpp and benchmarks/cases/loader.cpp."""

import io
import pathlib
import sys
import tempfile

import numpy
import torch

WIDTH, HEIGHT = 500, 375
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def drawn(number):
    """Soft shapes with grain, a byte array [375, 500, 3]."""
    with numpy.errstate(over="ignore"):  # a generator modulo 2^32, all its numbers at once
        factors = numpy.cumprod(numpy.full(WIDTH * HEIGHT, 1664525, dtype=numpy.uint32), dtype=numpy.uint32)
        before = numpy.concatenate([numpy.ones(1, dtype=numpy.uint32), factors[:-1]])
        sums = numpy.cumsum(before, dtype=numpy.uint32)
        first = numpy.uint32(2654435761 * (number + 1) % 2**32)
        states = (factors * first + sums * numpy.uint32(1013904223)).reshape(HEIGHT, WIDTH)
    grain = (states >> 24) / 255 * 24 - 12
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    angle = number * 0.7
    wave = numpy.sin((x * numpy.cos(angle) + y * numpy.sin(angle)) / 23) * 60
    planes = [128 + wave + 40 * numpy.sin(x / (31.0 + c) + y / 47.0 + c) + grain for c in range(3)]
    return numpy.clip(numpy.stack(planes, 2), 0, 255).astype(numpy.uint8)


class Folder:
    """CLASS/*.jpg of drawn images, removed at the end."""

    def __init__(self, classes, per_class):
        from PIL import Image

        self.kept = tempfile.TemporaryDirectory(prefix="weft_bench_")
        for c in range(classes):
            folder = pathlib.Path(self.kept.name) / f"class{c}"
            folder.mkdir()
            for i in range(per_class):
                Image.fromarray(drawn(c * per_class + i)).save(folder / f"{i}.jpg", quality=90)

    @property
    def path(self):
        return self.kept.name


def epoch_of(cases, work):
    """An epoch through DataLoader with two worker processes that stay."""
    from torchvision import datasets, transforms

    edge, per_class = cases.size(224, 32), cases.size(128, 2)
    folder = Folder(2, per_class)
    prepare = transforms.Compose([transforms.RandomResizedCrop(edge), transforms.RandomHorizontalFlip(),
                                  transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder.path, prepare), batch_size=cases.size(32, 2),
                                         shuffle=True, num_workers=2, persistent_workers=True)

    def step(kept=folder):
        for _ in loader:
            pass

    return work(step, 2 * per_class)


def augmented(cases, work, *policy):
    """Decoded images on one thread: random resized crop, then the policy."""
    from PIL import Image
    from torchvision import transforms

    prepare = transforms.Compose([transforms.RandomResizedCrop(cases.size(224, 16)), *policy])
    # As an encoded image comes to a transform: decoded, in memory.
    kept = io.BytesIO()
    Image.fromarray(drawn(0)).save(kept, "png")
    image = Image.open(kept)
    image.load()
    count = cases.size(64, 2)

    def step():
        for _ in range(count):
            prepare(image)

    return work(step, count)


def add_images(cases, work):
    try:
        from torchvision import transforms
    except ImportError as error:
        print(f"pytorch.py: loader_jpeg, augment_*: left out, torchvision cannot be imported: {error}", file=sys.stderr)
        return
    cases.add("loader_jpeg", "images/s", lambda: epoch_of(cases, work))
    for name, policy in {
        "standard": [],
        "autoaugment": [transforms.AutoAugment()],
        "randaugment": [transforms.RandAugment(2, 9)],
        "trivialaugment": [transforms.TrivialAugmentWide()],
        "color_jitter": [transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    }.items():
        cases.add(f"augment_{name}", "images/s", lambda policy=policy: augmented(cases, work, *policy))
