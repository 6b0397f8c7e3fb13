// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "nn/module.h"
#include "optim/optimizers.h"
#include "tests/golden/golden.h"
#include "tests/golden/hashed.h"

namespace weft::golden {

/// A training of training.py, and its data.
struct Task {
  std::shared_ptr<nn::Module> model;
  int64_t count, size, classes;
  std::vector<int64_t> seeds;  ///< seeds of each step's images, from the file
};

/// Batch `step`: images by the seed, labels i + step modulo classes. In the model's dtype, on its device.
struct Batch {
  Tensor images, labels;
};
Batch batch(const Task& task, int64_t step);

/// The optimizers of training.py by their names there.
std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, const std::vector<NamedTensor>& parameters);

/// Three steps; returns the losses.
std::vector<double> train(const Task& task, optim::Optimizer& optimizer);

}  // namespace weft::golden
