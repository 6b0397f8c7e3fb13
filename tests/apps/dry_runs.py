# SPDX-License-Identifier: Apache-2.0
"""Every program that runs long has a --dry-run, which says what would be done and writes nothing."""
import pathlib
import struct
import tempfile
import unittest
import zlib

import programs

TOOL = None  # does nothing long, or starts a program that has a --dry-run of its own
CPU = ["--device", "cpu"]
# Flags that make a run of each program possible here; {DATA} is the folder that make_data() fills.
# And the parts that it needs.
DRY = {
    "ddp": ([*CPU, "--data", "{DATA}/images"], {"libspng", "libzip"}),
    "finetune": ([*CPU, "--data", "{DATA}/texts", "--model", "bert_tiny", "--vocab-size", "100"], {"utf8proc"}),
    "linear_probe": ([*CPU, "--data", "shapes", "--model", "vit_tiny4", "--weights", "random"], set()),
    "load_bench": (["--dset_type", "fs", "--data_root", "{DATA}/images"], {"libspng"}),
    "make_fields": (["--years", "2"], set()),
    "mnist": (["--no-cuda", "--data-dir", "{DATA}/digits", "--epochs", "1", "--batch-size", "4", "--save-model"], set()),
    "multinode": (["3", "1", *CPU, "--log-dir", "log"], set()),
    "one_gpu": ([*CPU, "--data", "{DATA}/images"], {"libspng", "libzip"}),
    "ouai_demo": ([*CPU, "--data", "shapes", "--model", "vit_tiny4", "--weights", "random"], set()),
    "pack": (["--data_root", "{DATA}/images"], {"libspng"}),
    "sample_gpt": TOOL,
    "single_gpu": (["3", "1", *CPU, "--log-dir", "log"], set()),
    "train_gpt": ([*CPU, "--data", "{DATA}/nersc.yaml", "--model", "gpt_tiny", "--context", "4", "--batch-size", "2"], set()),
    "train_image": ([*CPU, "--data", "shapes", "--model", "resnet8"], set()),
    "train_multi_gpu": ([*CPU, "--yaml_config", "{DATA}/nersc.yaml"], {"yaml-cpp"}),
    "train_single_gpu": ([*CPU, "--yaml_config", "{DATA}/nersc.yaml"], {"yaml-cpp"}),
    "train_vit": ([*CPU, "--yaml_config", "{DATA}/fields/ViT.yaml", "--local_batch_size", "1"], {"yaml-cpp", "HDF5"}),
    "weft-info": TOOL,
    "weft-run": TOOL,
    "weft-sweep": (["--grid", "lr=1,2", "--metric", "loss"], set()),
    "weft-watch": TOOL,
    "weft-weights show": TOOL,
    "weft-weights convert": (["{DATA}/a.safetensors", "to.safetensors"], set()),
    "weft-weights diff": TOOL,
}
LINKS = ("mnist_", "base_training", "ddp_training", "horovod_training", "ddp_example")


def png(path, side=8):
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    rows = b"".join(b"\0" + bytes([row] * 3 * side) for row in range(side))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def digits(folder, part, count):
    folder.mkdir(parents=True, exist_ok=True)
    images = struct.pack(">IIII", 0x803, count, 28, 28) + bytes(i % 251 for i in range(count * 784))
    labels = struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count))
    (folder / f"{part}-images-idx3-ubyte").write_bytes(images)
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)


def make_data(folder, make_fields, with_fields):
    for part in ("train", "val"):
        for label in ("ants", "bees"):
            for i in range(2):
                png(folder / "images" / part / label / f"{i}.png")
    for part, count in (("train", 20), ("t10k", 10)):
        digits(folder / "digits/MNIST/raw", part, count)
    (folder / "texts").mkdir()
    for part in ("train", "dev"):
        rows = "".join(f"{word} film number {i}\t{label}\n" for i in range(8) for label, word in ((0, "bad"), (1, "good")))
        (folder / "texts" / f"{part}.tsv").write_text("sentence\tlabel\n" + rows)
    (folder / "nersc.yaml").write_text("default:\n  num_samples: 8\n  img_size: 8\n  batch_size: 4\n  valid_batch_size: 4\n")
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    (folder / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    if with_fields:
        made = programs.Run(make_fields, ["--out", str(folder / "fields"), "--years", "2", "--times", "4", "--channels", "4", "--rows", "16",
                                          "--columns", "32"])
        assert made.code == 0, made


class DryRuns(programs.Case):
    def test_it_says_what_would_be_done_and_writes_nothing(self):
        with tempfile.TemporaryDirectory() as name:
            data = pathlib.Path(name)
            make_data(data, self.programs["make_fields"], "HDF5" in self.parts)
            before = sorted(str(path) for path in data.rglob("*"))
            for words, (_, page) in self.helps.items():
                row = "mnist" if words[0].startswith(LINKS) else " ".join(words)
                if page.commands != [""]:
                    continue
                with self.subTest(" ".join(words)):
                    self.assertIn(row, DRY, "a program that this test does not know: say in DRY how it runs, or that it does nothing long")
                    has = "dry-run" in {flag.name.replace("_", "-") for flag in page.flags}
                    self.assertEqual(has, DRY[row] is not TOOL, "programs that run long, and they alone, have a --dry-run")
                    if has and DRY[row][1] <= self.parts:
                        self.expect_plan(words, [word.replace("{DATA}", str(data)) for word in DRY[row][0]])
            self.assertEqual(sorted(str(path) for path in data.rglob("*")), before)

    def expect_plan(self, words, arguments):
        tail = ["--", "true", "{run}"] if words == ("weft-sweep",) else []
        run = self.run_of(words, *arguments, "--dry-run", *tail)
        self.assertEqual(run.code, 0, run)
        self.assertEqual(run.left, [], run)
        if words == ("weft-sweep",):
            self.assertRegex(run.out, r"^true \S+lr=1 --lr=1\ntrue \S+lr=2 --lr=2\n$")
        else:
            self.assertRegex(run.out + run.err, r"would (train|write|time)", run)


if __name__ == "__main__":
    programs.main()
