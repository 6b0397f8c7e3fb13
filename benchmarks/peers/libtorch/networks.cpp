// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/libtorch/autocast.h"
#include "benchmarks/peers/libtorch/training.h"

namespace peer {
namespace {

Work train(const NetworkSize& size) {
  const auto training = std::make_shared<Training>(size);
  return {[training] { training->step(); }, static_cast<double>(size.batch)};
}

Work infer(const NetworkSize& size) {
  const auto network = std::make_shared<Network>(size);
  network->model->eval();
  return {[network, bf16 = size.bf16] {
            const c10::InferenceMode no_gradients;
            const Autocast low(bf16);
            network->model(network->x);
          },
          static_cast<double>(size.batch)};
}

}  // namespace

void add_network_cases(Cases& cases, const Target& target) {
  for (const bool large : {false, true})
    for (const bool bf16 : {false, true})
      for (const Layout layout : kLayouts) {
        const NetworkSize size = large ? resnet50_size(target, bf16, layout) : resnet18_size(target, bf16, layout);
        const std::string name = large ? "resnet50" : "resnet18", ending = bf16 ? "_bf16" : "_f32";
        cases.push_back({in_layout(name + "_train" + ending, layout), "images/s", [=] { return train(size); }});
        cases.push_back({in_layout(name + "_infer" + ending, layout), "images/s", [=] { return infer(size); }});
      }
}

}  // namespace peer
