// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/cases/cases.h"

namespace weft::benchmarks {

/// An op with its inputs, made together with its case.
struct Op {
  std::vector<Tensor> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> forward;
};

/// The op without gradients.
Work forward(const Target& target, const Op& op, double amount = 1);
/// The op and its backward, with a gradient for every floating input; the gradient of the output is given, ones for a
/// loss.
Work forward_backward(const Target& target, const Op& op, double amount = 1);

/// The unit of an op's time, and for a rate the work of one forward (with its backward: three times as much).
struct Told {
  std::string unit = "ms";
  double amount = 1;
};

/// NAME_forward and NAME_forward_backward; `make` is called when one of them is measured.
void add_op_cases(Cases& cases, const Target& target, const std::string& name, const std::function<Op()>& make,
                  const Told& told = {});

}  // namespace weft::benchmarks
