// SPDX-License-Identifier: Apache-2.0
// What NERSC's workflow trains: a small convolutional net on random fields.
#pragma once
#include <algorithm>

#include "data/loader.h"
#include "nn/activation.h"
#include "nn/conv.h"
#include "nn/sequential.h"

namespace weft::nersc {

struct CnnOptions {
  int64_t in = 1, out = 1;
  int64_t depth = 5;   ///< convolutions in all, at least 2
  int64_t width = 64;  ///< channels between them
};

/// Convolutions of 3 x 3 that keep the size, each followed by a leaky ReLU (0.01): [N, H, W, in] -> [N, H, W, out].
/// Names: conv_in.0.weight, conv_hidden.0.0.weight, …, conv_out.0.weight.
struct Cnn : nn::Module {
  std::shared_ptr<nn::Sequential> conv_in, conv_hidden = std::make_shared<nn::Sequential>(), conv_out;

  /// Errors: a depth below 2.
  explicit Cnn(const CnnOptions& options = {}) {
    WEFT_CHECK(options.depth >= 2, "cnn: expected a depth of at least 2, got ", options.depth);
    conv_in = block(options.in, options.width);
    for (int64_t i = 0; i < options.depth - 2; ++i) conv_hidden->add(block(options.width, options.width));
    conv_out = block(options.width, options.out);
  }
  Tensor forward(const Tensor& x) const override { return (*conv_out)((*conv_hidden)((*conv_in)(x))); }
  void fields(nn::Visitor& v) override {
    v("conv_in", conv_in);
    v("conv_hidden", conv_hidden);
    v("conv_out", conv_out);
  }

 private:
  static std::shared_ptr<nn::Sequential> block(int64_t in, int64_t out) {
    return nn::sequential(std::make_shared<nn::Conv2d>(in, out, Size2d{3, 3}, Conv2dOptions{.padding = {1, 1}}),
                          std::make_shared<nn::LeakyReLU>(0.01));
  }
};

struct RandomFieldsOptions {
  int64_t samples = 128;
  int64_t size = 128;  ///< height and width
  int64_t in = 1, out = 1;
  int workers = 1;  ///< threads; 0: batches are made when asked for
  uint64_t seed = 0;
  Device device = {};
};

struct FieldBatch {
  Tensor x;  ///< [B, H, W, in]
  Tensor y;  ///< [B, H, W, out]
  int64_t count = 0, epoch = 0, step = 0;
  void fields(auto& v) { v("x", x), v("y", y); }
};

/// A set of pairs of fields that are uniform in [0, 1) and new in every epoch: a sample is a function of (seed, epoch,
/// number) alone, so that all numbers of ranks and workers see the same. Nothing predicts the targets, so the best
/// guess is 1/2, and the least mean squared error 1/12. An incomplete last batch of all ranks is left out, as in the
/// original.
class RandomFields : public data::Loader<FieldBatch> {
 public:
  /// `sampler` says what a batch is.
  RandomFields(const RandomFieldsOptions& o, const data::Sampler& sampler)
      : Loader(collation(o), sampler,
               {.workers = o.workers,
                .prefetch = std::max(o.workers, 1),
                .drop_last = true,
                .seed = o.seed,
                .device = o.device}) {}

 private:
  static data::Collation collation(const RandomFieldsOptions& o) {
    data::Collation made;
    made.parts = {{DType::f32, {o.size, o.size, o.in}}, {DType::f32, {o.size, o.size, o.out}}};
    made.write = [parts = made.parts](int64_t, data::Draw& draw, const data::Row& row) {
      for (size_t part = 0; part < parts.size(); ++part)
        std::generate_n(row.part<float>(part), parts[part].sizes.numel(),
                        [&] { return static_cast<float>(draw.uniform()); });
    };
    made.size = o.samples;
    made.names = {"x", "y"};
    return made;
  }
};

}  // namespace weft::nersc
