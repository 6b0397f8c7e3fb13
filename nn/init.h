// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace weft {
struct WeightBlock;
}

namespace weft::nn {

/// The number of inputs per output and of outputs per input, for a weight [out, …, in] (Linear's [O, I],
/// Conv2d's [O, R, S, I]).
struct Fans {
  int64_t in = 1, out = 1;
};
/// Errors: a weight of fewer than two dimensions.
Fans fans_of(const Tensor& weight);

/// The count that scales a weight: inputs per output, or outputs per input.
enum class Fan { in, out };

/// gain = sqrt(2 / (1 + slope^2)), the slope of the leaky ReLU after the weight (0: ReLU).
struct KaimingOptions {
  double slope = 0;
  Fan fan = Fan::in;
};

/// How the weight of a layer begins.
enum class Init {
  kaiming_uniform,         ///< PyTorch's default for Linear and Conv2d: slope sqrt(5), which is ± 1 / sqrt(fan in)
  kaiming_normal,          ///< for a ReLU after it, by the inputs
  kaiming_normal_fan_out,  ///< for a ReLU after it, by the outputs
  transformer,             ///< normal of standard deviation 0.02, bias 0 (Devlin et al. 2018; Touvron et al. 2021)
};

/// While it lives, the layers that this thread makes leave their weights as the memory is: for models whose weights are
/// loaded afterwards, or of which only names and sizes are asked. Untouched pages of the CPU cost nothing.
class SkipInit {
 public:
  SkipInit();
  ~SkipInit();
  SkipInit(const SkipInit&) = delete;
  SkipInit& operator=(const SkipInit&) = delete;

 private:
  bool outer_;
};

/// Weights that are written later: for models of which each process keeps a part, so that none holds them whole. While
/// a Scope lives, the layers that this thread makes note how their weights begin, and train::load_weights() notes which
/// tensor of the file follows. The generator moves on as if all had been drawn: the values are the same.
class DeferredInit {
 public:
  class Scope {
   public:
    /// Null: nothing is deferred.
    explicit Scope(DeferredInit* notes);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    DeferredInit* outer_;
  };
  /// The notes of this thread; null: none.
  static DeferredInit* current();

  DeferredInit();
  ~DeferredInit();
  DeferredInit(const DeferredInit&) = delete;
  DeferredInit& operator=(const DeferredInit&) = delete;

  /// The values of a part alone, on the host, in the order of the weight's memory.
  using ReadBlock = std::function<Tensor(const WeightBlock& block)>;
  /// The last note of a weight counts. `read`: a part can be had without the rest.
  void note(const Tensor& weight, std::function<void()> write, ReadBlock read = {});
  bool has(const Tensor& weight) const;
  /// Writes the weight as noted; nothing where there is no note of it. Errors: it was written after the note.
  void write(const Tensor& weight);
  /// How parts of the weight are read; empty: it is written as a whole.
  ReadBlock reader(const Tensor& weight) const;
  /// Instead of write(): fills `part` with the elements from `first` on, in the order of memory. Errors: as write().
  void read(const Tensor& weight, int64_t first, const Tensor& part);
  size_t pending() const;

  /// A line for each file with weights: all ranks must have equal lines. `check` compares checksums of the whole file.
  void add_source(const std::string& line, std::function<void()> check);
  const std::string& sources() const { return sources_; }
  /// For one rank: the others read parts alone. Errors: a file is damaged.
  void check_sources() const;

 private:
  struct Notes;
  std::unique_ptr<Notes> notes_;
  std::string sources_;
  std::vector<std::function<void()>> checks_;
};

// The draws come from the generator of the tensor's device (core/random.h): manual_seed() makes them repeat.

/// weight = uniform in ± sqrt(3) gain / sqrt(fan) (He et al. 2015, "Delving deep into rectifiers", in uniform form).
void kaiming_uniform_(const Tensor& weight, KaimingOptions options = {});
/// weight = normal of standard deviation gain / sqrt(fan) (He et al. 2015).
void kaiming_normal_(const Tensor& weight, KaimingOptions options = {});
/// weight = uniform in ± gain sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010).
void xavier_uniform_(const Tensor& weight, double gain = 1);
/// weight = normal of standard deviation gain sqrt(2 / (fan in + fan out)).
void xavier_normal_(const Tensor& weight, double gain = 1);
/// x = normal numbers, those outside of [low, high] drawn again. Waits for the device. Errors: std that is not
/// positive, bounds that leave less than 1% of the draws.
void trunc_normal_(const Tensor& x, double mean = 0, double std = 1, double low = -2, double high = 2);
/// The rows of weight [out, …] become gain times orthonormal vectors, or its columns where there are fewer (Saxe et al.
/// 2013). Computed on the CPU in f64.
void orthogonal_(const Tensor& weight, double gain = 1);
void init_weight_(const Tensor& weight, Init init);
/// bias = uniform in ± 1 / sqrt(fan in of the weight), PyTorch's default.
void bias_uniform_(const Tensor& bias, const Tensor& weight);
/// The bias that goes with a weight of `init`: 0 for Init::transformer, else bias_uniform_().
void init_bias_(const Tensor& bias, const Tensor& weight, Init init);
/// x = normal of mean 0, for what is no weight of a layer: class tokens, positions, embeddings.
void init_normal_(const Tensor& x, double std);

}  // namespace weft::nn
