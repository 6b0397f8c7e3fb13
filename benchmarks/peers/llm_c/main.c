// SPDX-License-Identifier: Apache-2.0
// GPT-2 by llm.c on the CPU, timed. train_gpt2.c is that of a clone of github.com/karpathy/llm.c (-I): with TESTING it
// is its functions without its main().
//   llm_c train|infer SEQUENCES TOKENS POSITIONS LAYERS HEADS WIDTH SECONDS REPETITIONS    seconds of a step, the
//   median llm_c losses FILE SEQUENCES TOKENS STEPS                                                from llm.c's
//   checkpoint FILE
#define TESTING
#include "train_gpt2.c"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/// What gpt2_build_from_checkpoint() leaves, with random weights.
static void make(GPT2* model, GPT2Config config) {
  memset(model, 0, sizeof *model);
  model->config = config;
  fill_in_parameter_sizes(model->param_sizes, config);
  for (int i = 0; i < NUM_PARAMETER_TENSORS; ++i) model->num_parameters += model->param_sizes[i];
  model->params_memory = malloc_and_point_parameters(&model->params, model->param_sizes);
  uint32_t state = 1;
  for (size_t i = 0; i < model->num_parameters; ++i) {
    state = state * 1664525u + 1013904223u;
    model->params_memory[i] = 0.04f * ((float)(state >> 8) / 16777216.0f - 0.5f);
  }
  model->mean_loss = -1.0f;
}

/// The step of benchmarks/cases/transformers.cpp.
static void train(GPT2* model, int* ids, int* labels, int B, int T, int step) {
  gpt2_forward(model, ids, labels, B, T);
  gpt2_zero_grad(model);
  gpt2_backward(model);
  gpt2_update(model, 1e-4f, 0.9f, 0.999f, 1e-8f, 1e-2f, step);
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  const int losses = argc == 6 && strcmp(argv[1], "losses") == 0;
  const int training = argc == 10 && strcmp(argv[1], "train") == 0;
  if (!losses && !training && !(argc == 10 && strcmp(argv[1], "infer") == 0)) {
    fprintf(stderr, "llm_c: expected train, infer or losses and their numbers\n");
    return 2;
  }
  const int B = atoi(argv[losses ? 3 : 2]), T = atoi(argv[losses ? 4 : 3]);
  GPT2 model;
  if (losses) {
    gpt2_build_from_checkpoint(&model, argv[2]);
  } else {
    const GPT2Config config = {atoi(argv[4]), 50257, 50304, atoi(argv[5]), atoi(argv[6]), atoi(argv[7])};
    make(&model, config);
  }
  int *ids = mallocCheck((size_t)(B * T) * sizeof(int)), *labels = mallocCheck((size_t)(B * T) * sizeof(int));
  for (int i = 0; i < B * T; ++i) ids[i] = labels[i] = i % model.config.vocab_size;

  int step = 0;
  if (losses) {
    while (step < atoi(argv[5])) {
      train(&model, ids, labels, B, T, ++step);
      printf("loss %.7f\n", model.mean_loss);
    }
    return 0;
  }
  const int repetitions = atoi(argv[9]);
  const double target = atof(argv[8]) / repetitions;
  double* seconds = mallocCheck((size_t)repetitions * sizeof(double));
  for (int i = -1; i < repetitions; ++i) {  // the first one warms up: it allocates
    const double start = now();
    int count = 0;
    do {
      if (training)
        train(&model, ids, labels, B, T, ++step);
      else
        gpt2_forward(&model, ids, NULL, B, T);
      ++count;
    } while (i >= 0 && now() - start < target);
    if (i >= 0) seconds[i] = (now() - start) / count;
  }
  qsort(seconds, (size_t)repetitions, sizeof(double), compare);
  printf("seconds %.9f\n", (seconds[(repetitions - 1) / 2] + seconds[repetitions / 2]) / 2);
  return 0;
}
