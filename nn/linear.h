// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/linear_fp8.h"
#include "core/ops/unary.h"
#include "nn/init.h"
#include "nn/module.h"

namespace weft::nn {

struct LinearOptions {
  bool bias = true;
  Init init = Init::kaiming_uniform;
};

/// y = x weight^T + bias over the last dimension: x [..., in], weight [out, in], bias [out].
struct Linear : Module {
  Tensor weight, bias;
  std::shared_ptr<Fp8Scaling> fp8;  ///< null but after use_fp8()

  Linear(Integer in, Integer out, LinearOptions options = {});
  Tensor forward(const Tensor& x) const override;
  /// gelu(forward(x)) in one pass over the result.
  Tensor forward_gelu(const Tensor& x, Gelu approximate = Gelu::erf) const;
  /// Whether `factors` [out] of the results cost less in the weight (ScaledLinear) than in a pass over the results of
  /// x.
  bool takes_factors(const Tensor& x, const Tensor& factors) const;
  /// As above, by sizes alone: `rows` results of `in` features each.
  static bool takes_factors(int64_t rows, int64_t in) { return rows >= 4 * in; }
  void fields(Visitor& v) override;
  int64_t flops(const Shape& x, const Shape& y) const override;

 private:
  bool is_in_fp8(const Tensor& x) const;
};

/// While it lives, `layer` gives factors (x weight^T + bias), factors [out], on this thread: one GEMM with a scaled
/// weight and bias, and no pass over the results. Their gradients are those of the unscaled ones.
class ScaledLinear {
 public:
  ScaledLinear(const Linear& layer, const Tensor& factors);
  ~ScaledLinear();
  ScaledLinear(const ScaledLinear&) = delete;
  ScaledLinear& operator=(const ScaledLinear&) = delete;
  /// The factors of a layer's results; nullptr: none.
  static const Tensor* factors_of(const Linear& layer);

 private:
  const Linear* layer_;
  Tensor factors_;
  const ScaledLinear* outer_;
};

/// Every Linear of `module` and below multiplies in 8 bits from now on (linear_fp8()), where its input is bf16 or
/// Autocast(bf16) is alive; elsewhere, in f32 say, as before. Its state dict then has two buffers and a counter:
/// `fp8_amaxes`, `fp8_latest` and `fp8_measured`. A file may lack them and a model may ignore them. Leave out layers
/// that are small or need precision, such as the head: call this on the blocks of a transformer, before DDP or FSDP.
/// Returns how many there are.
int64_t use_fp8(Module& module, Fp8Recipe recipe = {});
/// Whether a name of a state dict is one of these three.
bool is_fp8_state(const std::string& name);

}  // namespace weft::nn
