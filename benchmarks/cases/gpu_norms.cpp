// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/gradients.h"
#include "core/ops/batch_norm.h"
#include "core/ops/layer_norm.h"
#include "core/ops/losses.h"
#include "core/ops/random.h"
#include "core/ops/softmax.h"

// Ops that mainly read and write memory, on a GPU, in microseconds: norms, softmax and the loss.

namespace weft::benchmarks {

void add_gpu_norm_cases(Cases& cases, const Target& target) {
  const Device device = target.device;
  const int64_t N = target.size(64, 2), E = target.size(56, 5), C = target.size(64, 8);
  const int64_t rows = target.size(8192, 6), width = target.size(1024, 40), classes = target.size(1000, 10);
  const auto vector = [=](int64_t n, double mean) { return normal({n}, mean, 0.1, DType::f32, device); };
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const std::string ending = "_" + std::string(name(dtype));
    const auto add = [&](const std::string& op, const std::function<Op()>& make) {
      add_op_cases(cases, target, op + ending, make, {.unit = "us"});
    };
    add("batch_norm", [=] {
      const Tensor mean = Tensor::zeros({C}, DType::f32, device), var = Tensor::ones({C}, DType::f32, device);
      return Op{{normal({N, E, E, C}, 0, 1, dtype, device), vector(C, 1), vector(C, 0)},
                [=](const auto& x) { return batch_norm(x[0], x[1], x[2], mean, var, {.training = true}); }};
    });
    add("layer_norm", [=] {
      return Op{{normal({rows, width}, 0, 1, dtype, device), vector(width, 1), vector(width, 0)},
                [](const auto& x) { return layer_norm(x[0], x[1], x[2]); }};
    });
    add("softmax", [=] {
      return Op{{normal({rows, width}, 0, 1, dtype, device)}, [](const auto& x) { return softmax(x[0]); }};
    });
    add("cross_entropy", [=] {
      std::vector<int64_t> labels(static_cast<size_t>(rows));
      for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i * 7919) % classes;
      return Op{{normal({rows, classes}, 0, 1, dtype, device), Tensor::from(labels, device)},
                [](const auto& x) { return cross_entropy(x[0], x[1]); }};
    });
  }
}

}  // namespace weft::benchmarks
