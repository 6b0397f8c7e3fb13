# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/images: encoded images, what Pillow decodes from them, and what Pillow makes of a resize.

Needs python3-pil and python3-numpy. Run from the root of the source tree: python3 tests/golden/images.py
NAME.jpg, NAME.png and others are read by data/decode.h, NAME.ppm is the expected result; resize_FILTER_WxH.ppm is the expected
resize of source.ppm.
"""
import pathlib
import zlib
import struct

import numpy as np
from PIL import Image, ImageOps

out = pathlib.Path(__file__).parent / "images"
out.mkdir(exist_ok=True)


def save_ppm(name, image):
    image.convert("RGB").save(out / f"{name}.ppm")


# An image that looks different after every turn and mirroring.
y, x = np.mgrid[0:24, 0:32]
colours = np.stack([x * 8, y * 10, 255 - (x + y) * 4], axis=-1).clip(0, 255).astype(np.uint8)
colours[2:8, 3:9] = (250, 30, 20)
colours[15:20, 20:30] = (10, 240, 60)
upright = Image.fromarray(colours)

upright.save(out / "baseline.jpg", quality=95)
save_ppm("baseline", Image.open(out / "baseline.jpg"))
upright.save(out / "progressive.jpg", quality=90, progressive=True)
save_ppm("progressive", Image.open(out / "progressive.jpg"))
upright.save(out / "chroma420.JPEG", quality=90, subsampling=2)
save_ppm("chroma420", Image.open(out / "chroma420.JPEG"))
upright.convert("L").save(out / "grey.jpg", quality=95)
save_ppm("grey", Image.open(out / "grey.jpg"))
upright.convert("CMYK").save(out / "cmyk.jpg", quality=95)  # Pillow writes Adobe's marker and inverts
save_ppm("cmyk", Image.open(out / "cmyk.jpg"))

for orientation in range(1, 9):
    turned = {1: [], 2: [Image.FLIP_LEFT_RIGHT], 3: [Image.ROTATE_180], 4: [Image.FLIP_TOP_BOTTOM],
              5: [Image.TRANSPOSE], 6: [Image.ROTATE_90], 7: [Image.TRANSVERSE], 8: [Image.ROTATE_270]}[orientation]
    image = upright
    for step in turned:
        image = image.transpose(step)
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(out / f"exif{orientation}.jpg", quality=95, subsampling=0, exif=exif)
    save_ppm(f"exif{orientation}", ImageOps.exif_transpose(Image.open(out / f"exif{orientation}.jpg")))

upright.save(out / "rgb.png")
save_ppm("rgb", upright)
upright.convert("L").save(out / "grey.png")
save_ppm("grey_png", upright.convert("L"))
alpha = upright.convert("RGBA")
alpha.putalpha(Image.fromarray((x * 8).astype(np.uint8)))
alpha.save(out / "alpha.png")
save_ppm("alpha", upright)
upright.quantize(16).save(out / "palette.png")
save_ppm("palette", upright.quantize(16))
upright.convert("1").save(out / "bilevel.png")
save_ppm("bilevel", upright.convert("1"))


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


# 16 bits per channel, which Pillow cannot write: the high byte is what an 8-bit reader should see.
deep = (colours.astype(">u2") << 8 | 0x5A).astype(">u2")
rows = b"".join(b"\0" + deep[row].tobytes() for row in range(24))
(out / "deep.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 24, 16, 2, 0, 0, 0)) +
                               chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
save_ppm("deep", upright)

# Formats that Leptonica reads, without loss. The first image of an animation counts.
for name, saving in {"rgb.webp": {"lossless": True}, "rgb.bmp": {}, "rgb.tiff": {"compression": "tiff_lzw"}, "rgb.pnm": {}}.items():
    upright.save(out / name, **saving)
alpha.save(out / "alpha.webp", lossless=True, exact=True)
upright.quantize(16).save(out / "animated.gif", save_all=True, append_images=[upright.quantize(4)])
save_ppm("animated", Image.open(out / "animated.gif"))
upright.convert("L").save(out / "grey.tif")
upright.convert("1").save(out / "bilevel.tif", compression="group4")

noise = np.random.default_rng(7).integers(0, 256, (23, 37, 3), dtype=np.uint8)
source = Image.fromarray(noise)
save_ppm("source", source)
for name, method in [("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC)]:
    for size in [(10, 7), (37, 11), (61, 40), (18, 46), (1, 1), (37, 23)]:
        save_ppm(f"resize_{name}_{size[0]}x{size[1]}", source.resize(size, method))
