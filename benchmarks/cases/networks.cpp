// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/training.h"

// Whole networks, as in training and in use: ResNet-18 (CIFAR stem, batch 64) and ResNet-50 (224x224, batch 8).

namespace weft::benchmarks {

void add_network_cases(Cases& cases, const Target& target) {
  for (const bool large : {false, true}) {
    const std::string name = large ? "resnet50" : "resnet18";
    for (const DType precision : {DType::f32, DType::bf16}) {
      const NetworkSize size = large ? resnet50_size(target, 8, precision) : resnet18_size(target, 64, precision);
      const std::string ending = "_" + std::string(weft::name(precision));
      cases.push_back({name + "_train" + ending, "images/s", [=] { return train(size, target); }});
      cases.push_back({name + "_infer" + ending, "images/s", [=] { return infer(size, target); }});
    }
  }
}

// Cases with a process of their own: the start of a program that makes one tensor, and the peak memory of a training.
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
