# benchmarks/peers/llm_c.py measures a clone of llm.c

This one has the names that the peer calls, and steps of 40 ms, of which the forward takes 10.

  $ mkdir llm.c; cat > llm.c/train_gpt2.c <<'END'
  > #include <stdint.h>
  > #include <stdio.h>
  > #include <stdlib.h>
  > #include <string.h>
  > #include <time.h>
  > #include <unistd.h>
  > #define NUM_PARAMETER_TENSORS 1
  > typedef struct { int max_seq_len, vocab_size, padded_vocab_size, num_layers, num_heads, channels; } GPT2Config;
  > typedef struct { float* all; } ParameterTensors;
  > typedef struct {
  >   GPT2Config config;
  >   ParameterTensors params;
  >   size_t param_sizes[1], num_parameters;
  >   float *params_memory, mean_loss;
  > } GPT2;
  > void* mallocCheck(size_t size) { return malloc(size); }
  > void fill_in_parameter_sizes(size_t* sizes, GPT2Config config) { sizes[0] = (size_t)config.channels; }
  > float* malloc_and_point_parameters(ParameterTensors* params, size_t* sizes) { return params->all = malloc(4 * sizes[0]); }
  > void gpt2_build_from_checkpoint(GPT2* model, const char* path) { memset(model, 0, sizeof *model); model->config.vocab_size = 7; }
  > void gpt2_forward(GPT2* model, int* ids, int* labels, size_t B, size_t T) { usleep(10000); model->mean_loss = 2.5f; }
  > void gpt2_zero_grad(GPT2* model) {}
  > void gpt2_backward(GPT2* model) { usleep(30000); }
  > void gpt2_update(GPT2* model, float a, float b, float c, float d, float e, int t) {}
  > END
  $ peer() { "$WEFT"/benchmarks/peers/llm_c.py --source "${clone:-llm.c}" --build build --tiny "$@"; }
  $ peer --list | grep gcc
  gpt2_train_f32@gcc  sequences/s
  gpt2_infer_f32@gcc  sequences/s

Two sequences take 40 ms at least, and 10.

  $ peer --filter 'train.*gcc' --seconds 0.3 --repetitions 3
  gpt2_train_f32@gcc\t([1-9]|[1-4][0-9]|50)(\.[0-9]+)?\tsequences/s (re)
  $ peer --filter 'infer.*gcc' --seconds 0.3 --repetitions 3
  gpt2_infer_f32@gcc\t([1-9][0-9]?|1[0-9][0-9]|200)(\.[0-9]+)?\tsequences/s (re)
  $ fails peer --filter nothing
  llm_c.py: no case matches 'nothing'. --list prints them all [1]

Losses that differ from Weft's are an error, and so is a missing clone.

  $ weft() { printf '#!/bin/bash\nfor _ in 1 2; do echo "loss %s"; done\n' $1 > weft; chmod +x weft; peer --losses "$PWD"/weft --steps 2; }
  $ weft 2.5000001 | tail -n 1
  largest relative difference [34]\..e-08 (re)
  $ fails weft 2.6 | tail -n 1
  llm_c.py: the losses are not the same [1]
  $ clone=. fails peer | tail -n 1
  llm_c.py: error: --source, or the variable LLM_C: expected a clone of github.com/karpathy/llm.c, got . [2]
