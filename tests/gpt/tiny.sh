# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Transcripts begin with it: a text of 2000 characters, the flags of a small model in tiny.toml, and what compares runs. 100 windows of 16
# tokens train: 25 steps of four in an epoch.
who=("the cat" "a dog" "her bird" "my fish") does=(sits runs sings sleeps)
for i in {0..199}; do echo "${who[i % 4]} ${does[i / 4 % 4]}."; done | head -c 2000 >text
cat >tiny.toml <<'END'
data = "text"
model = "gpt_tiny"
context = 16
epochs = 2
warmup-steps = 5
lr = 3e-3
log-interval = 5
val-share = 0.2
device = "cpu"
END

# weights RUN: the file of the model that a run has trained.
weights() { echo "$1/model/model.safetensors"; }

# tensors RUN NAME…: how many tensors the model has, and the shapes of those named.
tensors() { weft-weights show --json "$(weights "$1")" | jq -c '(.tensors | length), (.tensors[] | select(IN(.name; $ARGS.positional[])) | [.name, .shape])' --args "${@:2}"; }

# losses RUN: losses and gradient norms of a run, one a line.
losses() { jq '(.train_loss, .gradient_norm, .val_loss) | numbers' "$1/metrics.jsonl"; }

# val_loss RUN
val_loss() { jq .val_loss "$1/summary.json"; }

# learned RUN: whether the loss of the validation is below 1.5, where log 22 = 3.1 is that of a guess.
learned() { jq -e '.val_loss < 1.5' "$1/summary.json"; }

# distance RUN OTHER: the mean distance between the weights of two runs.
distance() { "$WEFT"/tests/gpt/distance.py "$(weights "$1")" "$(weights "$2")"; }

# close RUN OTHER BOUND: whether the lines of both have the same numbers but for BOUND, in which numbers above 1 are relative.
close() {
  paste <(losses "$1") <(losses "$2") | awk -v bound="$3" -v names="$1 $2" '
    { apart = $1 - $2; if (apart < 0) apart = -apart; if (NF != 2 || apart > bound * ($2 > 1 ? $2 : 1)) { print names ": " $0; far = 1 } }
    END { exit far || NR < 2 }'
}

# equal RUN OTHER: whether a run is another one but for the order of sums (1e-7), which Adam's division makes more of in each step where a gradient is
# almost 0: mean distance of the weights and each loss and norm of the lines.
equal() {
  local mean
  mean=$(distance "$1" "$2") && awk -v mean="$mean" 'BEGIN { exit !(mean < 1e-5) }' && close "$1" "$2" 1e-5 && return
  echo "$1 is $mean from $2" && return 1
}

# on RANKS RUN FLAG…: five steps on so many ranks, which must be the run `one` but for the order of sums.
on() {
  ranks "$1" train_gpt --config tiny.toml --max-steps 5 --out "$2" "${@:3}" >log 2>&1 && equal "$2" one && return
  cat log && return 1
}

# rest RANKS RUN FLAG…: the other steps of a run on other ranks, after which it has learned what `whole` has.
rest() {
  ranks "$1" train_gpt --config tiny.toml --resume auto --out "$2" "${@:3}" >log 2>&1 &&
    jq -es '(.[0].val_loss - .[1].val_loss) | fabs < 0.02' "$2/summary.json" whole/summary.json >result && return
  cat log && return 1
}
