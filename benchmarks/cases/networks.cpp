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

}  // namespace weft::benchmarks
