// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace weft::test {

using Inputs = std::vector<Tensor>;
using OpFunction = std::function<Tensor(const Inputs&)>;

/// The values that an input of a case gets.
enum class Values {
  normal,    ///< standard normal
  positive,  ///< uniform in [0.5, 2]
  unit,      ///< uniform in [-0.75, 0.75]
  apart,     ///< a shuffled grid with steps of 1/8, no zero: all different, so that maxima and kinks stay put
  ties,      ///< whole numbers from -3 to 3
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

/// Which references a case's gradients have: central differences and PyTorch; with kinks (equal elements) PyTorch alone.
enum class Derivative { smooth, kinks, none };

/// One call of an op: every test of the op reads this row. derived.cpp compares first and second derivatives with central
/// differences, and results on every device in every dtype with f64 on the CPU. golden.cpp compares with PyTorch.
struct OpCase {
  std::string name;
  std::vector<OpInput> inputs;
  OpFunction function;
  /// PyTorch's expression in the names of tests/golden/torch_calls.py. `#` and a reason: PyTorch has none.
  std::string torch = {};
  int64_t length = 1;  ///< terms of the longest sum in forward or backward: tolerances grow with its root
  bool low = true;     ///< also in bf16
  Derivative derivative = Derivative::smooth;
  /// The ops that this case shows in docs/ops.md; empty: the one whose name the case's name begins with.
  std::vector<std::string> ops = {};
  std::string needs = {};  ///< the part that this build lacks

  friend std::ostream& operator<<(std::ostream& out, const OpCase& op) { return out << op.name; }
};

/// A row's function: `CALL(relu(x[0]))`.
#define CALL(...) [](const Inputs& x) -> Tensor { return __VA_ARGS__; }
/// A row's function and PyTorch's expression, where one text is both.
#define BOTH(...) CALL(__VA_ARGS__), #__VA_ARGS__

std::vector<OpCase>& op_cases();

/// Adds cases to op_cases(): `const AddCases cases{{…}, {…}};` at namespace scope.
struct AddCases {
  AddCases(std::initializer_list<OpCase> cases) { op_cases().insert(op_cases().end(), cases); }
};

/// An input as an f64, i64 or bool tensor on the CPU. Every C++ library draws the same numbers.
Tensor draw(const OpInput& input, std::mt19937_64& random);

/// The inputs of a case as such tensors, without gradients.
std::vector<Tensor> make_inputs(const OpCase& op, std::mt19937_64& random);

/// `x` in another dtype (floating ones only) and on another device, in the layout of the case.
Tensor place(const Tensor& x, const OpInput& input, DType dtype, Device device);

/// y and the gradients of a case for the gradient `dy` (undefined tensors where none flows).
struct Outcome {
  Tensor y;
  std::vector<Tensor> gradients;
};
Outcome run_case(const OpCase& op, const std::vector<Tensor>& inputs, const Tensor& dy);

/// The CPU, the reference for a GPU, and the tests' GPU if there is any.
std::vector<Device> case_devices();

/// Notes for docs/ops.md what of a case is looked at.
void note(const OpCase& op, Device device, DType dtype, const char* what);

/// A list of numbers as Python's json reads it.
std::string json_list(const std::vector<double>& values);

}  // namespace weft::test
