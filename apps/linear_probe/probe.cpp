// SPDX-License-Identifier: Apache-2.0
#include "apps/linear_probe/probe.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/text.h"
#include "nn/models/dinov2.h"
#include "train/load_weights.h"

namespace weft::linear_probe {
namespace {

void require_gradients(nn::Module& module, bool wanted) {
  for (const auto& [name, parameter] : module.parameters()) parameter.requires_grad_(wanted);
}

}  // namespace

Probe::Probe(std::shared_ptr<nn::VisionTransformer> backbone, int64_t classes)
    : m(std::move(backbone)), linear(m->options.width, classes) {}

Tensor Probe::forward(const Tensor& x) const {
  Tensor features;
  {
    const NoGrad guard(grad_enabled() && !frozen);
    features = (*m)(x);
  }
  const Tensor logits = linear(features);
  return scale == 1 ? logits : mul(logits, scale);
}

void Probe::fields(nn::Visitor& v) {
  v("m", m);
  v("linear", linear);
}

void Probe::freeze() {
  frozen = true;
  scale = 1;
  require_gradients(*m, false);
}

void Probe::thaw() {
  frozen = false;
  scale = 1.0 / 8;
  require_gradients(*m, true);
  if (m->mask_token.defined()) m->mask_token.requires_grad_(false);  // nothing here uses it
}

std::shared_ptr<nn::VisionTransformer> make_backbone(const std::string& name, bool recompute_blocks) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> names = nn::dinov2_names();
  const bool is_dinov2 = has(names);
  const std::vector<std::string> others = nn::vit_names();
  names.insert(names.end(), others.begin(), others.end());
  WEFT_CHECK(has(names), "--model: no backbone is called '", name, "'.", suggestion(name, names));
  nn::VisionTransformerOptions options = is_dinov2 ? nn::dinov2_options(name) : nn::vit_options(name, 0);
  options.recompute = recompute_blocks;
  return std::make_shared<nn::VisionTransformer>(options);
}

void load_backbone(nn::VisionTransformer& backbone, const std::string& path, const std::string& key) {
  try {
    train::load_weights(backbone, path, {.strict = true, .key = key, .rename = {.map = "auto", .leave_out = "head."}});
  } catch (const Error& error) {
    fail("--weights ", path, ": ", error.what());
  }
}

}  // namespace weft::linear_probe
