// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/optim/sgd.h>

#include "benchmarks/peers/libtorch/resnet.h"

namespace peer {

struct NetworkSize {
  bool bottleneck = false, cifar_stem = false;
  int64_t batch = 8, edge = 224, classes = 1000;
  bool bf16 = false;  ///< the forward under autocast
  Layout layout = Layout::nchw;
};

NetworkSize resnet18_size(const Target& target, bool bf16, Layout layout);
NetworkSize resnet50_size(const Target& target, bool bf16, Layout layout);

struct Network {
  ResNet model;
  Tensor x, labels;
  explicit Network(const NetworkSize& size);
};

class Training {
 public:
  explicit Training(const NetworkSize& size);
  void step();

 private:
  bool bf16_;
  Network network_;
  torch::optim::SGD sgd_;
};

}  // namespace peer
