// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::kernels {

/// Whether GEMMs and convolutions of f32 tensors may round operands to tf32 for tensor cores (exponent of 8 bits as
/// f32, significand of 10). Accumulators are f32. The setting applies to cuda, to Weft's and
/// the vendor's kernels; a CPU always computes in f32. It holds for the whole process: the last set_allow_tf32, else
/// the variable WEFT_ALLOW_TF32 (0 or 1), else false. Errors: WEFT_ALLOW_TF32 has another value.
bool allow_tf32();
/// A captured graph keeps the setting of its capture.
void set_allow_tf32(bool allowed);

/// Calls set_allow_tf32(allowed) while an object lives. For tests.
class Tf32Scope {
 public:
  explicit Tf32Scope(bool allowed = true) : before_(allow_tf32()) { set_allow_tf32(allowed); }
  ~Tf32Scope() { set_allow_tf32(before_); }
  Tf32Scope(const Tf32Scope&) = delete;
  Tf32Scope& operator=(const Tf32Scope&) = delete;

 private:
  bool before_;
};

}  // namespace weft::kernels
