#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs benchmarks/peers/llm_c.py ($1) on a pretended llm.c, whose losses are those of a pretended Weft ($loss) or not: its rows are there, the
# rate is that of the steps, losses that differ are an error, and so is a missing clone.
set -euo pipefail
peer=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/llm.c"
cat > "$folder/llm.c/train_gpt2.c" <<'EOF'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define NUM_PARAMETER_TENSORS 1
typedef struct { int max_seq_len, vocab_size, padded_vocab_size, num_layers, num_heads, channels; } GPT2Config;
typedef struct { float* all; } ParameterTensors;
typedef struct {
  GPT2Config config;
  ParameterTensors params;
  size_t param_sizes[1], num_parameters;
  float *params_memory, mean_loss;
} GPT2;
void* mallocCheck(size_t size) { return malloc(size); }
void fill_in_parameter_sizes(size_t* sizes, GPT2Config config) { sizes[0] = (size_t)config.channels; }
float* malloc_and_point_parameters(ParameterTensors* params, size_t* sizes) { return params->all = malloc(4 * sizes[0]); }
void gpt2_build_from_checkpoint(GPT2* model, const char* path) { memset(model, 0, sizeof *model); model->config.vocab_size = 7; }
void gpt2_forward(GPT2* model, int* ids, int* labels, size_t B, size_t T) { usleep(10000); model->mean_loss = 2.5f; }
void gpt2_zero_grad(GPT2* model) {}
void gpt2_backward(GPT2* model) { usleep(30000); }
void gpt2_update(GPT2* model, float a, float b, float c, float d, float e, int t) {}
EOF
run() {  # run ARGUMENTS…: status and output in $status, $output
  status=0
  output=$("$peer" --source "$folder/llm.c" --build "$folder/build" --tiny "$@" 2>&1) || status=$?
}
expect() {  # expect STATUS REGEX: of the last run
  if [[ $status -ne $1 ]] || ! grep -qE "$2" <<< "$output"; then
    echo "expected status $1 and '$2', got $status and: $output"
    exit 1
  fi
}
run --list
expect 0 $'^gpt2_train_f32@gcc\tsequences/s$'
expect 0 $'^gpt2_infer_f32@gcc\tsequences/s$'
# Two sequences in 40 ms at least, and in 10.
run --filter 'train.*gcc' --seconds 0.3 --repetitions 3
expect 0 $'^gpt2_train_f32@gcc\t([1-9]|[1-4][0-9]|50)(\\.[0-9]+)?\tsequences/s$'
run --filter 'infer.*gcc' --seconds 0.3 --repetitions 3
expect 0 $'^gpt2_infer_f32@gcc\t([1-9][0-9]?|1[0-9][0-9]|200)(\\.[0-9]+)?\tsequences/s$'
run --filter nothing
expect 1 "no case matches 'nothing'"
for loss in 2.5000001 2.6; do
  printf '#!/bin/bash\nfor _ in 1 2; do echo "loss %s"; done\n' $loss > "$folder/weft"
  chmod +x "$folder/weft"
  run --losses "$folder/weft" --steps 2
  if [[ $loss == 2.6 ]]; then expect 1 'the losses are not the same'; else expect 0 'largest relative difference [34]\..e-08'; fi
done
status=0
output=$("$peer" --source "$folder" --build "$folder/build" 2>&1) || status=$?
expect 2 'expected a clone of github.com/karpathy/llm.c'
