// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "benchmarks/cases/cases.h"
#include "nn/models/resnet.h"
#include "optim/optimizers.h"

namespace weft::benchmarks {

/// A residual network, a batch, and how precisely it is computed.
struct NetworkSize {
  bool bottleneck = false;  ///< ResNet-50, else ResNet-18
  nn::Stem stem = nn::Stem::imagenet;
  int64_t batch = 8, edge = 224, classes = 1000;
  DType precision = DType::f32;
  bool tiny = false;  ///< one block where there are several
};

/// ResNet-18 with the CIFAR stem on 32x32 images.
NetworkSize resnet18_size(const Target& target, int64_t batch, DType precision);
/// ResNet-18, ResNet-50 on 224x224 images.
NetworkSize resnet18_imagenet_size(const Target& target, int64_t batch, DType precision);
NetworkSize resnet50_size(const Target& target, int64_t batch, DType precision);

/// A model with its batch on a device.
struct Network {
  std::shared_ptr<nn::ResNet> model;
  Tensor x, labels;
  DType precision;
  Network(const NetworkSize& size, Device device);
};

/// One training step: forward under autocast (bf16), cross entropy, backward, SGD with momentum and the optimizer's
/// low-precision copy of the weights.
class Training {
 public:
  Training(const NetworkSize& size, Device device);
  void step();

 private:
  Network network_;
  optim::SGD sgd_;
};

/// images/s of training and of inference (running statistics, no gradients).
Work train(const NetworkSize& size, const Target& target);
Work infer(const NetworkSize& size, const Target& target);

}  // namespace weft::benchmarks
