// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/op_case.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <sstream>

#include "core/autograd.h"
#include "core/random.h"
#include "tests/support/devices.h"
#include "tests/support/rows.h"

namespace weft::test {

std::vector<OpCase>& op_cases() {
  static std::vector<OpCase> cases;
  return cases;
}

namespace {

/// In [0, 1).
double draw_uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// Box and Muller 1958.
double draw_normal(std::mt19937_64& random) {
  const double radius = std::sqrt(-2 * std::log(1 - draw_uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * draw_uniform(random));
}

int64_t draw_whole(int64_t below, std::mt19937_64& random) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(std::max<int64_t>(below, 1)));
}

std::vector<double> draw_numbers(const OpInput& input, std::mt19937_64& random) {
  std::vector<double> values(static_cast<size_t>(input.sizes.numel()));
  const size_t columns = input.sizes.rank() ? static_cast<size_t>(input.sizes[input.sizes.rank() - 1]) : 1;
  const auto fill = [&](const auto& next) { std::generate(values.begin(), values.end(), next); };
  switch (input.values) {
    case Values::normal:
      fill([&] { return draw_normal(random); });
      break;
    case Values::positive:
    case Values::simplex:
      fill([&] { return 0.5 + 1.5 * draw_uniform(random); });
      break;
    case Values::unit:
      fill([&] { return 1.5 * draw_uniform(random) - 0.75; });
      break;
    case Values::apart:
      for (size_t i = 0; i < values.size(); ++i) {
        const double step = (static_cast<double>(i) - static_cast<double>(values.size() / 2)) / 8;
        values[i] = step + (step < 0 ? -0.0625 : 0.0625);
        std::swap(values[i], values[static_cast<size_t>(draw_whole(static_cast<int64_t>(i) + 1, random))]);
      }
      break;
    case Values::ties:
      fill([&] { return static_cast<double>(draw_whole(7, random) - 3); });
      break;
    case Values::classes:
      fill([&] { return static_cast<double>(draw_whole(input.classes, random)); });
      break;
    case Values::boolean:
      fill([&] { return static_cast<double>(draw_whole(2, random)); });
      break;
  }
  if (input.values == Values::simplex)
    for (size_t row = 0; row < values.size(); row += columns) {
      const double total = std::accumulate(&values[row], &values[row] + columns, 0.0);
      for (size_t c = 0; c < columns; ++c) values[row + c] /= total;
    }
  return values;
}

Tensor laid_out(const Tensor& x, Layout layout) {
  if (layout == Layout::transposed) return x.transpose(-1, -2).clone().transpose(-1, -2);
  if (layout == Layout::stretched) return x.slice(0, 0, 1).clone().expand(x.sizes());
  if (layout == Layout::dense) return x;
  Shape wide = x.sizes();
  wide[wide.rank() - 1] *= 2;
  const Tensor buffer = Tensor::full(wide, 77, x.dtype(), x.device());
  const Tensor view = buffer.slice(-1, 0, x.size(-1), 2);
  view.copy_(x);
  return view;
}

}  // namespace

Tensor draw(const OpInput& input, std::mt19937_64& random) {
  const Tensor x = Tensor::from(draw_numbers(input, random), input.sizes);
  const DType dtype = input.values == Values::classes   ? DType::i64
                      : input.values == Values::boolean ? DType::boolean
                                                        : DType::f64;
  return laid_out(x.to(dtype), input.layout).detach();
}

std::vector<Tensor> make_inputs(const OpCase& op, std::mt19937_64& random) {
  std::vector<Tensor> tensors;
  for (const OpInput& input : op.inputs) tensors.push_back(draw(input, random));
  return tensors;
}

Tensor place(const Tensor& x, const OpInput& input, DType dtype, Device device) {
  if (!x.is_floating()) return laid_out(x.to(device), input.layout).detach();
  const DType kept = input.wide && dtype != DType::f64 ? DType::f32 : dtype;
  return laid_out(x.to(kept).to(device).contiguous(), input.layout).detach();
}

Outcome run_case(const OpCase& op, const std::vector<Tensor>& inputs, const Tensor& dy) {
  std::vector<Tensor> leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor leaf = inputs[i].detach();
    if (op.derivative != Derivative::none && op.inputs[i].gradient && leaf.is_floating()) leaf.requires_grad_();
    leaves.push_back(leaf);
  }
  Outcome outcome;
  manual_seed(7);
  outcome.y = op.function(leaves);
  if (outcome.y.requires_grad()) outcome.y.backward(dy.to(outcome.y.dtype()).to(outcome.y.device()));
  for (const Tensor& leaf : leaves) outcome.gradients.push_back(leaf.grad());
  return outcome;
}

std::vector<Device> case_devices() {
  std::vector<Device> all{{DeviceKind::cpu, 0}};
  if (tests::runs_on(DeviceKind::cuda)) all.push_back({DeviceKind::cuda, 0});
  return all;
}

void note(const OpCase& op, Device device, DType dtype, const char* what) {
  std::string ops;
  for (const std::string& name : op.ops) ops += (ops.empty() ? "" : ",") + name;
  tests::add_row({"op", op.name, ops, std::string(name(device.kind)), std::string(name(dtype)), what});
}

std::string json_list(const std::vector<double>& values) {
  std::ostringstream out;
  out << std::scientific;  // or -0 is read as the integer 0
  out.precision(17);
  for (const double value : values) {
    out << (out.tellp() == 0 ? '[' : ',');
    if (std::isfinite(value))
      out << value;
    else
      out << (std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
  }
  return (values.empty() ? "[" : out.str()) + ']';
}

}  // namespace weft::test
