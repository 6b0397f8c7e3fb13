// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iomanip>

#include "core/tensor.h"

namespace weft {
namespace {

/// Writes the values of a dense host copy as nested brackets.
class Printer {
 public:
  Printer(const Tensor& tensor, int edge_items, int precision)
      : sizes_(tensor.sizes()),
        edge_(std::max(edge_items, 1)),
        precision_(precision),
        dtype_(tensor.dtype()),
        values_(tensor.to_vector<double>()),
        exact_(dtype_ == DType::i64 ? tensor.to_vector<int64_t>() : std::vector<int64_t>()) {
    shorten_ = tensor.numel() > 1000 || std::any_of(sizes_.begin(), sizes_.end(), [&](int64_t n) { return n > 40; });
    visit(
        0, 0, [&](int64_t at) { width_ = std::max(width_, format(at).size()); }, [](int, bool) {}, [](int) {});
  }

  std::string text() {
    std::ostringstream out;
    visit(
        0, 0, [&](int64_t at) { out << std::setw(static_cast<int>(width_)) << format(at); },
        [&](int depth, bool skipped) {
          const bool innermost = depth + 1 == sizes_.rank();
          const std::string line =
              innermost ? std::string(" ") : "\n" + std::string(static_cast<size_t>(depth) + 1, ' ');
          out << ',' << line;
          if (skipped) out << "…," << line;
        },
        [&](int bracket) { out << (bracket > 0 ? '[' : ']'); });
    return out.str();
  }

 private:
  template <class Value, class Between, class Bracket>
  void visit(int depth, int64_t offset, const Value& value, const Between& between, const Bracket& bracket) {
    if (depth == sizes_.rank()) return value(offset);
    const int64_t size = sizes_[depth];
    int64_t inner = 1;
    for (int d = depth + 1; d < sizes_.rank(); ++d) inner *= sizes_[d];
    const bool cut = shorten_ && size > 2 * edge_;
    bracket(1);
    for (int64_t i = 0; i < size; ++i) {
      const bool jump = cut && i == edge_;
      if (jump) i = size - edge_;
      if (i > 0) between(depth, jump);
      visit(depth + 1, offset + i * inner, value, between, bracket);
    }
    bracket(-1);
  }

  std::string format(int64_t at) const {
    const double value = values_[static_cast<size_t>(at)];
    if (dtype_ == DType::boolean) return value != 0 ? "true" : "false";
    if (dtype_ == DType::i64) return std::to_string(exact_[static_cast<size_t>(at)]);
    if (!is_floating(dtype_)) return std::to_string(static_cast<int64_t>(value));
    std::ostringstream out;
    out << std::setprecision(precision_) << (std::isnan(value) ? std::abs(value) : value);  // no sign of a NaN
    return out.str();
  }

  Shape sizes_;
  int64_t edge_;
  int precision_;
  DType dtype_;
  std::vector<double> values_;
  std::vector<int64_t> exact_;  // an i64 does not always fit a double
  bool shorten_ = false;
  size_t width_ = 0;
};

}  // namespace

std::string to_string(const Tensor& tensor, int edge_items, int precision) {
  if (!tensor.defined()) return "none";
  if (tensor.raw_data() == nullptr && tensor.numel() > 0) return tensor.description() + " without memory now";
  return tensor.description() + ' ' + Printer(tensor, edge_items, precision).text();
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace weft
