# SPDX-License-Identifier: Apache-2.0
"""apps/container/Dockerfile is built and the image trains: without CUDA, on a Debian 12 that debootstrap makes here, since no registry may be in reach.

Needs root, buildah, debootstrap and Debian's packages from the network; says so and is skipped (exit code 77) without. The compiler's
cache is this machine's, so that a second build takes a minute."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import debian

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("CCACHE_DIR", pathlib.Path.home() / ".cache/ccache"))
STEP = "train_image --data shapes --model resnet8 --batch-size 16 --max-steps 3".split()


def run(*words, code=0):
    """What a command prints; the test ends where it ends otherwise than with `code`."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != code:
        sys.exit(f"{done.stdout[-6000:]}\nerror: expected {code}, got {done.returncode} of: {' '.join(str(word) for word in words)}")
    return done.stdout


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def expect(text, part):
    if part not in text:
        sys.exit(f"{text}\nerror: expected '{part}'")


def main(work, buildah):
    isolated = ["--isolation", "chroot", "--network", "host"]
    base = work / "base"
    if why := debian.bootstrap("bookworm", base):
        skip(why)
    run("tar", "-C", base, "-cf", work / "base.tar", ".")
    shutil.rmtree(base)
    container = run(*buildah, "from", "scratch").split()[-1]
    run(*buildah, "add", container, work / "base.tar", "/")
    run(*buildah, "commit", "--rm", container, "weft-base")
    (work / "base.tar").unlink()

    begin = time.monotonic()
    CACHE.mkdir(parents=True, exist_ok=True)
    print(run(*buildah, "bud", *isolated, "--build-arg", "DEVEL=localhost/weft-base", "--build-arg", "RUNTIME=localhost/weft-base", "--build-arg",
              "WEFT_CUDA=OFF", "--volume", f"{CACHE}:/root/.cache/ccache", "-t", "weft", "-f", ROOT / "apps/container/Dockerfile", ROOT)[-600:])  # fmt: skip
    print(f"built in {time.monotonic() - begin:.0f} s")
    print(run(*buildah, "images"))

    container = run(*buildah, "from", "weft").split()[-1]
    inside = [*buildah, "run", *isolated, container, "--"]
    print(run(*inside, *STEP, "--out", "/tmp/one")[-400:])
    run(*inside, "weft-run", "--nproc_per_node", "2", *STEP, "--out", "/tmp/two")
    expect(run(*inside, "cat", "/tmp/two/config.toml"), "2 ranks")
    expect(run(*inside, "weft-info", code=1), "GPU usable: no")
    expect(run(*inside, "mnist_ddp", "--help"), "mnist_ddp")  # in PATH, as job scripts start it


if __name__ == "__main__":
    if not shutil.which("buildah"):
        skip("needs buildah (apt-get install buildah)")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        storage = ["buildah", "--root", f"{folder}/storage", "--runroot", f"{folder}/run"]
        try:
            main(pathlib.Path(folder), storage)
        finally:
            subprocess.run([*storage, "rm", "--all"], stdout=subprocess.DEVNULL, check=False)  # its mounts
