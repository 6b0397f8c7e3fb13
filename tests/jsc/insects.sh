# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the transcripts of this folder.

# insects FOLDER: five images of ants and bees to train on, three to validate with, two to test with.
insects() {
  mkdir -p "$1"/{train,val,test}/{ants,bees}
  place baseline.jpg "$1"/train/ants/a.jpg
  place progressive.jpg "$1"/train/ants/b.jpg
  place chroma420.JPEG "$1"/train/bees/c.JPEG
  place grey.jpg "$1"/train/bees/d.jpg
  place exif6.jpg "$1"/train/bees/e.jpg
  place exif3.jpg "$1"/val/ants/f.jpg
  place baseline.jpg "$1"/val/bees/g.jpg
  place grey.jpg "$1"/val/bees/h.jpg
  place exif8.jpg "$1"/test/ants/i.jpg
  place grey.jpg "$1"/test/bees/j.jpg
}

# place IMAGE FILE: one of tests/golden's images.
place() {
  mkdir -p "$(dirname "$2")"
  cp "$WEFT/tests/golden/images/$1" "$2"
}

# The job scripts find the programs in PATH, and tests/jsc/srun in the place of Slurm's.
jobs_here() { export HOME=$PWD PATH=$WEFT/tests/jsc:$WEFT/apps/jsc:$PATH; }
