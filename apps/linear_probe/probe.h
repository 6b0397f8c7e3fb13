// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "nn/linear.h"
#include "nn/models/vision_transformer.h"

namespace weft::linear_probe {

/// A backbone and a linear classifier of its class token. x [N, H, W, 3] to logits [N, classes].
struct Probe : nn::Module {
  std::shared_ptr<nn::VisionTransformer> m;
  nn::Linear linear;
  bool frozen = true;  ///< the backbone is run without gradients
  double scale = 1;    ///< factor of the logits

  Probe(std::shared_ptr<nn::VisionTransformer> backbone, int64_t classes);
  Tensor forward(const Tensor& x) const override;
  void fields(nn::Visitor& v) override;

  /// The first phase: nothing but the classifier learns.
  void freeze();
  /// The second one: everything learns, and the logits are an eighth as large.
  void thaw();
};

/// The classifier of a Probe alone, under the same names: features [N, width] to logits [N, classes].
struct ProbeHead : nn::Module {
  std::shared_ptr<Probe> probe;

  explicit ProbeHead(std::shared_ptr<Probe> whole) : probe(std::move(whole)) {}
  Tensor forward(const Tensor& x) const override { return probe->linear(x); }
  void fields(nn::Visitor& v) override { v("linear", probe->linear); }
};

/// A backbone by its name, without a head and with weights as memory is. Errors: an unknown name, with the nearest one.
std::shared_ptr<nn::VisionTransformer> make_backbone(const std::string& name, bool recompute_blocks);

/// Copies weights from a file of any format into a backbone, without the classifier (`head.`). Names are those of
/// DINOv2, train_image or Hugging Face (docs/weights.md). `key`:
/// LoadWeightsOptions::key. Errors: it cannot be read; names
/// or shapes that do not fit.
void load_backbone(nn::VisionTransformer& backbone, const std::string& path, const std::string& key = "");

}  // namespace weft::linear_probe
