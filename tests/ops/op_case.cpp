// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/op_case.h"

#include <algorithm>
#include <numeric>

namespace weft::test {

std::vector<OpCase>& op_cases() {
  static std::vector<OpCase> cases;
  return cases;
}

namespace {

std::vector<double> draw(const OpInput& input, std::mt19937_64& random) {
  std::vector<double> values(static_cast<size_t>(input.sizes.numel()));
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> positive(0.5, 2);
  const size_t columns = input.sizes.rank() ? static_cast<size_t>(input.sizes[input.sizes.rank() - 1]) : 1;
  switch (input.values) {
    case Values::normal:
      for (double& value : values) value = normal(random);
      break;
    case Values::positive:
      for (double& value : values) value = positive(random);
      break;
    case Values::unit:
      for (double& value : values) value = positive(random) - 1.25;
      break;
    case Values::apart:
      for (size_t i = 0; i < values.size(); ++i) {
        const double step = (static_cast<double>(i) - static_cast<double>(values.size() / 2)) / 8;
        values[i] = step + (step < 0 ? -0.0625 : 0.0625);
      }
      std::shuffle(values.begin(), values.end(), random);
      break;
    case Values::classes:
      for (double& value : values)
        value = static_cast<double>(random() % static_cast<uint64_t>(std::max<int64_t>(input.classes, 1)));
      break;
    case Values::boolean:
      for (double& value : values) value = static_cast<double>(random() % 2);
      break;
    case Values::simplex:
      for (double& value : values) value = positive(random);
      for (size_t row = 0; row < values.size(); row += columns) {
        const double total = std::accumulate(&values[row], &values[row] + columns, 0.0);
        for (size_t c = 0; c < columns; ++c) values[row + c] /= total;
      }
      break;
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

std::vector<Tensor> make_inputs(const OpCase& op, std::mt19937_64& random) {
  std::vector<Tensor> tensors;
  for (const OpInput& input : op.inputs) {
    const Tensor x = Tensor::from(draw(input, random), input.sizes);
    const DType dtype = input.values == Values::classes   ? DType::i64
                        : input.values == Values::boolean ? DType::boolean
                                                          : DType::f64;
    tensors.push_back(laid_out(x.to(dtype), input.layout).detach());
  }
  return tensors;
}

Tensor place(const Tensor& x, const OpInput& input, DType dtype, Device device) {
  if (!x.is_floating()) return laid_out(x.to(device), input.layout).detach();
  const DType kept = input.wide && dtype != DType::f64 ? DType::f32 : dtype;
  return laid_out(x.to(kept).to(device).contiguous(), input.layout).detach();
}

}  // namespace weft::test
