# SPDX-License-Identifier: Apache-2.0
"""What torchvision makes of small images: its augmentation ops on Pillow images, their magnitudes, the policies.

Needs python3-torchvision and python3-pil. Names of tensors say what was done:
  source/NAME                         the image, u8 [H, W, C]
  op/NAME/OP/MAGNITUDE/SAMPLING/FILL  the image after _apply_op (hue: adjust_hue)
  space/POLICY/OP/HxW                 the magnitudes of all bins for an image of H x W
  policy/NAME                         [25, 2, 3]: op (index into OPS), probability, bin
"""
import numpy as np
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode, autoaugment
from torchvision.transforms import functional as F

OPS = {"identity": "Identity", "shear_x": "ShearX", "shear_y": "ShearY", "translate_x": "TranslateX",
       "translate_y": "TranslateY", "rotate": "Rotate", "brightness": "Brightness", "color": "Color",
       "contrast": "Contrast", "sharpness": "Sharpness", "posterize": "Posterize", "solarize": "Solarize",
       "autocontrast": "AutoContrast", "equalize": "Equalize", "invert": "Invert"}
GEOMETRIC = {"shear_x": (0.3, -0.1, 0.99), "shear_y": (0.2, -0.3), "rotate": (30.0, -10.0, 90.0, 135.0, -4.5)}
OTHERS = {"translate_x": (3.9, -5.0, 40.0), "translate_y": (2.0, -3.7), "brightness": (0.9, -0.9, 0.1),
          "color": (0.9, -0.99, 0.5), "contrast": (0.9, -0.3, -0.99), "sharpness": (0.9, -0.9),
          "posterize": (8.0, 5.0, 2.0), "solarize": (255.0, 141.66666, 0.0), "autocontrast": (0.0,),
          "equalize": (0.0,), "invert": (0.0,), "identity": (0.0,)}
HUES = (0.5, -0.5, 0.1, -0.23, 0.004)


def sources():
    random = np.random.default_rng(11)
    y, x = np.mgrid[0:16, 0:16]
    soft = np.stack([60 + 3 * x, 90 + 2 * y + x, 140 - 2 * x - y], axis=-1)
    return {"noise": random.integers(0, 256, (13, 17, 3)), "soft": soft, "square": random.integers(0, 256, (8, 8, 3)),
            "grey": random.integers(20, 200, (11, 9, 1))}


def array(image):
    values = np.asarray(image)
    return torch.from_numpy((values if values.ndim == 3 else values[:, :, None]).copy())


def all_cases():
    tensors = {}
    for name, pixels in sources().items():
        pixels = pixels.astype(np.uint8)
        image = Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0])
        tensors[f"source/{name}"] = array(image)

        def add(op, magnitude, sampling, fill, after):
            words = "black" if fill is None else "-".join(str(byte) for byte in fill)
            tensors[f"op/{name}/{op}/{magnitude!r}/{sampling}/{words}"] = array(after)

        def apply(op, magnitude, sampling="nearest", fill=None):
            magnitude = float(np.float32(magnitude))  # as the policies have them
            mode = InterpolationMode.NEAREST if sampling == "nearest" else InterpolationMode.BILINEAR
            add(op, magnitude, sampling, fill, autoaugment._apply_op(image, OPS[op], magnitude, mode, fill))

        fill = [128, 7, 250][:pixels.shape[2]]
        for op, magnitudes in GEOMETRIC.items():
            for magnitude in magnitudes:
                apply(op, magnitude)
                apply(op, magnitude, "bilinear", fill)
        for op, magnitudes in OTHERS.items():
            for magnitude in magnitudes:
                apply(op, magnitude, fill=fill if op.startswith("translate") else None)
        for shift in HUES:
            add("hue", shift, "nearest", None, F.adjust_hue(image, shift))
    for height, width in ((32, 48), (224, 224), (331, 331)):
        spaces = {"autoaugment": autoaugment.AutoAugment()._augmentation_space(10, (height, width)),
                  "randaugment": autoaugment.RandAugment()._augmentation_space(31, (height, width)),
                  "trivialaugment": autoaugment.TrivialAugmentWide()._augmentation_space(31)}
        for policy, space in spaces.items():
            for op, word in OPS.items():
                if word in space and space[word][0].ndim > 0:
                    tensors[f"space/{policy}/{op}/{height}x{width}"] = space[word][0].to(torch.float32)
    words = list(OPS.values())
    for policy in autoaugment.AutoAugmentPolicy:
        rows = [[(words.index(op), share, step or 0) for op, share, step in row]
                for row in autoaugment.AutoAugment(policy).policies]
        tensors[f"policy/{policy.value}"] = torch.tensor(rows, dtype=torch.float32)
    return tensors
