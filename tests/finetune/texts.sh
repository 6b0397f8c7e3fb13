# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# sentences FOLDER: train.tsv and dev.tsv of 96 and 24 sentences whose class is one word, in SST-2's layout.
sentences() {
  local subject verb word part number=0
  mkdir -p "$1"
  printf 'sentence\tlabel\n' | tee "$1/train.tsv" > "$1/dev.tsv"
  for subject in 'the film' 'this story' 'an actor' 'the plot' 'her voice'; do
    for verb in is was seems remains; do
      for word in bad:0 dull:0 awful:0 good:1 moving:1 fine:1; do
        part=train
        [ $((number++ % 5)) != 4 ] || part=dev
        printf '%s %s %s\t%s\n' "$subject" "$verb" "${word%:*}" "${word#*:}" >> "$1/$part.tsv"
      done
    done
  done
}

# printed FILE: the lines of the training, but for the last one, which has times.
printed() { grep -h "^{'loss\|^{'eval_loss" "$@"; }
