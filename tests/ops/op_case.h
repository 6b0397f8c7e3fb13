// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace weft::test {

/// The values that an input of a case gets.
enum class Values {
  normal,    ///< standard normal
  positive,  ///< uniform in [0.5, 2]
  unit,      ///< uniform in [-0.75, 0.75]
  apart,     ///< a shuffled grid with steps of 1/8, no zero: all different, so that maxima and kinks stay put
  classes,   ///< i64, 0 <= value < `classes`
  simplex,   ///< positive, each row sums to 1
  boolean,   ///< bool
};

/// How an input lies in memory.
enum class Layout {
  dense,
  transposed,  ///< the last two dimensions swapped in memory
  strided,     ///< every second element of a buffer twice as wide
  stretched,   ///< first dimension of stride 0
};

struct OpInput {
  Shape sizes;
  Values values = Values::normal;
  Layout layout = Layout::dense;
  int64_t classes = 0;
  bool gradient = true;
  /// Norms keep their vectors in f32 when x is in bf16.
  bool wide = false;
};

/// One call of an op. Everything else is derived from it (derived.cpp): first and second derivatives against central
/// differences, results and gradients on every device and in every dtype against f64 on the CPU.
struct OpCase {
  std::string name;
  std::vector<OpInput> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> function;
  int64_t length = 1;  ///< terms of the longest sum in forward or backward: tolerances grow with its root
  bool low = true;     ///< also in bf16
  bool differentiable = true;
  /// The ops that this case shows in docs/ops.md; empty: the one whose name the case's name begins with.
  std::vector<std::string> ops = {};
  std::string needs = {};  ///< the part that this build lacks

  friend std::ostream& operator<<(std::ostream& out, const OpCase& op) { return out << op.name; }
};

std::vector<OpCase>& op_cases();

/// Adds cases to op_cases(): `const AddCases cases{{…}, {…}};` at namespace scope.
struct AddCases {
  AddCases(std::initializer_list<OpCase> cases) { op_cases().insert(op_cases().end(), cases); }
};

/// The inputs of a case as f64 tensors on the CPU, without gradients.
std::vector<Tensor> make_inputs(const OpCase& op, std::mt19937_64& random);

/// `x` in another dtype (floating ones only) and on another device, in the layout of the case.
Tensor place(const Tensor& x, const OpInput& input, DType dtype, Device device);

}  // namespace weft::test
