// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/memory.h"

#include <cstdio>

namespace weft::linear_probe {
namespace {

constexpr double kGiB = 1 << 30;

/// Parameters of backbone and classifier, without memory for them.
int64_t parameters_of(const nn::VisionTransformerOptions& model, int64_t classes) {
  const nn::SkipInit sizes_alone;
  nn::VisionTransformer backbone(model);
  return nn::parameter_count(backbone) + classes * (model.width + 1);
}

int64_t hidden_of(const nn::VisionTransformerOptions& model) {
  return model.hidden > 0 ? model.hidden : 4 * model.width;
}

/// Bytes that a block keeps of `tokens`, its input included.
int64_t block_bytes(const nn::VisionTransformerOptions& model, int64_t tokens, DType precision) {
  const auto a = static_cast<int64_t>(size_of(precision));
  int64_t kept = 8, weights = 0;
  for (const int64_t in : {model.width, hidden_of(model)}) {  // features of the branches' last products
    if (model.layer_scale == 0) continue;
    if (precision != DType::f16 && nn::Linear::takes_factors(tokens, in))
      weights += in * model.width;
    else
      ++kept;
  }
  const int64_t inside = model.feed_forward == nn::FeedForward::swiglu ? 5 : 2;
  return tokens * (a * (kept * model.width + inside * hidden_of(model)) + 4 * model.heads + 16) + a * weights;
}

/// Backward's further memory at its peak: gradients on the way, at the feed-forward's second product.
int64_t working_bytes(const nn::VisionTransformerOptions& model, int64_t a) {
  const int64_t inside = model.feed_forward == nn::FeedForward::swiglu ? 3 : 1;
  return a * (2 * model.width + inside * hidden_of(model));
}

int64_t largest_batch(const nn::VisionTransformerOptions& model, StepShape step, double bytes) {
  const auto fits = [&](int64_t batch) {
    step.batch = batch;
    return static_cast<double>(step_memory(model, step).total()) <= bytes;
  };
  int64_t fitting = 0, above = 1;
  while (fits(above)) above *= 2;
  while (fitting + 1 < above) {
    const int64_t middle = fitting + (above - fitting) / 2;
    (fits(middle) ? fitting : above) = middle;
  }
  return fitting;
}

}  // namespace

StepMemory step_memory(const nn::VisionTransformerOptions& model, const StepShape& step) {
  WEFT_CHECK(step.side > 0 && step.side % model.patch == 0, "memory of a step: expected a side that is a multiple of ",
             model.patch, ", got ", step.side);
  const auto a = static_cast<int64_t>(size_of(step.precision));
  const int64_t parameters = parameters_of(model, step.classes), grid = step.side / model.patch;
  const int64_t tokens = step.batch * (1 + model.registers + grid * grid), input = a * model.width;
  const int64_t block = block_bytes(model, tokens, step.precision);
  StepMemory memory;
  memory.weights = memory.gradients = 4 * parameters;
  memory.moments = 8 * parameters;
  memory.copies = step.precision == DType::f32 ? 0 : a * parameters;
  memory.blocks = model.recompute ? (model.depth - 1) * tokens * input + block : model.depth * block;
  memory.images = step.batch * step.side * step.side * model.channels * (4 + a);
  memory.working = tokens * working_bytes(model, a);
  return memory;
}

std::string explain_memory(const std::string& name, nn::VisionTransformerOptions model, const StepShape& step) {
  model.recompute = false;
  const StepMemory kept = step_memory(model, step);
  model.recompute = true;
  const StepMemory again = step_memory(model, step);
  std::string text = str(name, ", ", step.batch, " images of ", step.side, "x", step.side, ", ", step.precision,
                         ", GiB:\n", "  --checkpointing   none  block\n");
  const auto row = [&](const char* what, int64_t StepMemory::*part) {
    char line[96];
    std::snprintf(line, sizeof line, "  %-14s %7.2f %6.2f\n", what, static_cast<double>(kept.*part) / kGiB,
                  static_cast<double>(again.*part) / kGiB);
    text += line;
  };
  row("weights", &StepMemory::weights);
  row("gradients", &StepMemory::gradients);
  row("Adam's moments", &StepMemory::moments);
  row("weights copied", &StepMemory::copies);
  row("blocks", &StepMemory::blocks);
  row("images", &StepMemory::images);
  row("working", &StepMemory::working);
  char line[160];
  std::snprintf(line, sizeof line, "  %-14s %7.2f %6.2f\n", "all", static_cast<double>(kept.total()) / kGiB,
                static_cast<double>(again.total()) / kGiB);
  text += line;
  text += "largest batch, where nothing else needs memory:\n";
  for (const int gigabytes : {40, 80, 141}) {
    nn::VisionTransformerOptions without = model;
    without.recompute = false;
    std::snprintf(line, sizeof line, "  %3d GB         %7lld %6lld\n", gigabytes,
                  static_cast<long long>(largest_batch(without, step, 1e9 * gigabytes)),
                  static_cast<long long>(largest_batch(model, step, 1e9 * gigabytes)));
    text += line;
  }
  return text;
}

}  // namespace weft::linear_probe
