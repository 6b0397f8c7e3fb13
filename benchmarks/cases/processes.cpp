// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/training.h"

// Cases with a process of their own: the start of a program that makes one tensor, and the peak memory of a training.

namespace weft::benchmarks {

void add_process_cases(Cases& cases, const Target& target) {
  cases.push_back(
      {.name = "startup", .unit = "ms", .process = [=] { Tensor::zeros({16}, DType::f32, target.device); }});
  const auto memory = [&](const std::string& name, const NetworkSize& size) {
    cases.push_back({.name = name, .unit = "MiB", .process = [=] {
                       Training training(size, target.device);
                       for (int i = 0; i < 3; ++i) training.step();
                     }});
  };
  memory("resnet18_train_memory", resnet18_size(target, 64, DType::f32));
  memory("resnet50_train_memory", resnet50_size(target, 8, DType::f32));
}

}  // namespace weft::benchmarks
