// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/ddp/ddp.h"
#include "nn/module.h"

namespace weft::dist::testing {

using ModelMaker = std::function<std::shared_ptr<nn::Module>()>;

/// A training run: the same global batches, whatever the number of ranks.
struct Training {
  ModelMaker make;
  /// parts[step][rank]: samples of that rank in that step; 0: a dummy batch.
  std::vector<std::vector<int64_t>> parts;
  DeviceKind device = DeviceKind::cpu;
  DdpOptions ddp = {};
  Shape image{8, 8, 3};      ///< size of a sample
  int micro_batches = 1;     ///< backward passes per step, all but the last without reduction
  bool reduce_each = false;  ///< reduce all of them
  double momentum = 0.9, lr = 0.05;
  /// Called on every rank with its model before DDP is made.
  std::function<void(nn::Module&, const ProcessGroupPtr&)> prepare = {};
};

struct Trained {
  std::vector<double> losses;  ///< loss per step, the mean over all samples
  std::vector<double> weights;
  std::vector<double> buffers;
  std::vector<int64_t> counters;
};

/// A model of seed `seed`; one thread at a time draws.
std::shared_ptr<nn::Module> build(const ModelMaker& make, uint64_t seed, DeviceKind device);

/// Samples `first` … `first + count - 1` of a step's global batch and their labels (four classes).
Tensor samples(int step, int64_t first, int64_t count, const Shape& image, DeviceKind device);
Tensor labels(int step, int64_t first, int64_t count, DeviceKind device);

/// One process without DDP on the whole batches.
Trained train_alone(const Training& training);
/// As the ranks of a group: all end with the same weights, which are compared here and returned. Nothing in a process
/// that is none of the ranks (processes as ranks, below mpirun).
Trained train_ranks(const Training& training, const std::string& backend);

/// `steps` steps whose samples are cut into `ranks` equal parts of `each`.
std::vector<std::vector<int64_t>> even_parts(int steps, int ranks, int64_t each);

/// Two convolutions, a linear layer; no norm, so that samples do not see each other.
std::shared_ptr<nn::Module> small_net();
/// As net(), with a BatchNorm2d after each convolution.
std::shared_ptr<nn::Module> normed_net();

/// Bytes that a backward hands to the network on this rank: 2 (n-1)/n of each bucket, by bytes of an element.
inline uint64_t gradient_bytes(const DDP& ddp, int64_t element = 4) {
  uint64_t bytes = 0;
  const int64_t n = ddp.group()->size();
  for (const Bucket& bucket : ddp.buckets())
    bytes += static_cast<uint64_t>(bucket.range.numel * element * 2 * (n - 1) / n);
  return bytes;
}

/// All elements of the model's parameters, and of its buffers.
std::vector<double> weights_of(nn::Module& model);
std::vector<double> buffers_of(nn::Module& model);
std::vector<double> gradients_of(nn::Module& model);
/// All elements of all tensors; the tensors' names with their sizes.
std::vector<double> values_of(const StateDict& dict);
std::vector<std::string> names_and_sizes(const StateDict& dict);

}  // namespace weft::dist::testing
