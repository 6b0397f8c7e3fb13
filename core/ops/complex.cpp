// SPDX-License-Identifier: Apache-2.0
#include "core/ops/complex.h"

#include <iomanip>
#include <limits>
#include <sstream>

#include "core/ops/arithmetic.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
#include "core/ops/einsum.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {
namespace {

Shape with_parts(const Shape& sizes, int64_t parts) {
  std::vector<int64_t> all(sizes.begin(), sizes.end());
  all.push_back(parts);
  return Shape(all);
}

void check_part(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && (x.dtype() == DType::f32 || x.dtype() == DType::f64), op, ": expected f32 or f64, got ", x);
}

ComplexTensor joined(const Tensor& re, const Tensor& im) { return ComplexTensor(stack({re, im}, -1)); }

/// x + 0i
ComplexTensor without_imaginary(const char* op, const Tensor& x) {
  check_part(op, x);
  return joined(x, zeros_like(x));
}

/// reduce() over `dims`, or over all but the parts.
template <class Reduce>
ComplexTensor reduced(const char* op, const ComplexTensor& z, std::vector<int64_t> dims, const Reduce& reduce) {
  if (dims.empty())
    for (int64_t d = 0; d < z.dim(); ++d) dims.push_back(d);
  for (int64_t& d : dims) d = wrap_dim(op, d, z.dim());
  return dims.empty() ? z : ComplexTensor(reduce(z.parts(), dims));
}

}  // namespace

ComplexTensor::ComplexTensor(Tensor parts) : parts_(std::move(parts)) {
  check_part("complex", parts_);
  WEFT_CHECK(parts_.dim() >= 1 && parts_.size(-1) == 2, "complex: expected parts [..., 2], got ", parts_);
}

Shape ComplexTensor::sizes() const {
  const Shape all = parts_.sizes();
  return Shape(std::span<const int64_t>(all.begin(), static_cast<size_t>(dim())));
}

ComplexTensor ComplexTensor::reshape(const Shape& sizes) const {
  return ComplexTensor(parts_.reshape(with_parts(sizes, 2)));
}
ComplexTensor ComplexTensor::permute(const Shape& order) const {
  std::vector<int64_t> dims;
  for (const int64_t d : order) dims.push_back(wrap_dim("permute", d, dim()));
  dims.push_back(dim());
  return ComplexTensor(parts_.permute(Shape(dims)));
}
ComplexTensor ComplexTensor::transpose(Integer a, Integer b) const {
  return ComplexTensor(parts_.transpose(wrap_dim("transpose", a, dim()), wrap_dim("transpose", b, dim())));
}
ComplexTensor ComplexTensor::slice(Integer d, Integer start, Integer length, Integer step) const {
  return ComplexTensor(parts_.slice(wrap_dim("slice", d, dim()), start, length, step));
}
ComplexTensor ComplexTensor::select(Integer d, Integer index) const {
  return ComplexTensor(parts_.select(wrap_dim("select", d, dim()), index));
}
ComplexTensor ComplexTensor::index(std::vector<Index> at) const {
  at.emplace_back(Slice{});  // the parts
  return ComplexTensor(parts_.index(at));
}
ComplexTensor ComplexTensor::unsqueeze(Integer d) const {
  return ComplexTensor(parts_.unsqueeze(wrap_dim("unsqueeze", d, dim() + 1)));
}
ComplexTensor ComplexTensor::squeeze(Integer d) const {
  return ComplexTensor(parts_.squeeze(wrap_dim("squeeze", d, dim())));
}
ComplexTensor ComplexTensor::expand(const Shape& sizes) const {
  return ComplexTensor(parts_.expand(with_parts(sizes, 2)));
}

std::vector<std::complex<double>> ComplexTensor::to_vector() const {
  const std::vector<double> values = parts_.to_vector<double>();
  std::vector<std::complex<double>> result;
  for (size_t i = 0; i < values.size(); i += 2) result.emplace_back(values[i], values[i + 1]);
  return result;
}

std::complex<double> ComplexTensor::item() const {
  WEFT_CHECK(numel() == 1, "item: expected one element, got ", description());
  return to_vector().front();
}

std::string ComplexTensor::description() const {
  if (!defined()) return "none";
  return str(dtype() == DType::f32 ? "complex64" : "complex128", sizes(), " on ", device());
}

std::ostream& operator<<(std::ostream& out, const ComplexTensor& z) {
  if (!z.defined()) return out << "none";
  std::ostringstream values;
  size_t shown = 0;
  for (const std::complex<double>& value : z.to_vector()) {
    if (++shown > 100) {
      values << ", …";
      break;
    }
    values << (shown == 1 ? "" : ", ") << std::setprecision(4) << value.real() << std::showpos << value.imag() << 'i'
           << std::noshowpos;
  }
  return out << z.description() << " [" << values.str() << ']';
}

ComplexTensor complex(const Tensor& re, const Tensor& im) {
  const OpScope scope("complex");
  check_part("complex", re);
  check_part("complex", im);
  const Shape sizes = broadcast_shapes("complex", re.sizes(), im.sizes());
  return joined(re.expand(sizes), im.expand(sizes));
}

ComplexTensor polar(const Tensor& r, const Tensor& angle) {
  const OpScope scope("polar");
  check_part("polar", r);
  check_part("polar", angle);
  return joined(mul(r, cos(angle)), mul(r, sin(angle)));
}

ComplexTensor view_as_complex(const Tensor& parts) { return ComplexTensor(parts); }
Tensor view_as_real(const ComplexTensor& z) { return z.parts(); }
Tensor real(const ComplexTensor& z) { return z.parts().select(-1, 0); }
Tensor imag(const ComplexTensor& z) { return z.parts().select(-1, 1); }

Tensor abs(const ComplexTensor& z) {
  const OpScope scope("abs");
  const Tensor largest = max(abs(z.parts().detach()), {-1}, true);
  const Tensor usable = logical_and(gt(largest, 0), lt(largest, std::numeric_limits<double>::infinity()));
  const Tensor size = where(usable, largest, 1);  // squares of z / size neither overflow nor vanish
  return mul(norm(div(z.parts(), size), {-1}), size.squeeze(-1));
}
ComplexTensor conj(const ComplexTensor& z) { return joined(real(z), neg(imag(z))); }
ComplexTensor exp(const ComplexTensor& z) { return polar(exp(real(z)), imag(z)); }
ComplexTensor neg(const ComplexTensor& z) { return ComplexTensor(neg(z.parts())); }

ComplexTensor add(const ComplexTensor& a, const ComplexTensor& b) { return ComplexTensor(add(a.parts(), b.parts())); }
ComplexTensor add(const ComplexTensor& a, const Tensor& b) { return add(a, without_imaginary("add", b)); }
ComplexTensor sub(const ComplexTensor& a, const Tensor& b) { return sub(a, without_imaginary("sub", b)); }
ComplexTensor sub(const ComplexTensor& a, const ComplexTensor& b) { return ComplexTensor(sub(a.parts(), b.parts())); }

ComplexTensor mul(const ComplexTensor& a, const ComplexTensor& b) {
  const Tensor re = real(a), im = imag(a), other = real(b), other_im = imag(b);
  return joined(sub(mul(re, other), mul(im, other_im)), add(mul(re, other_im), mul(im, other)));
}
ComplexTensor mul(const ComplexTensor& a, const Tensor& b) {
  check_part("mul", b);
  return ComplexTensor(mul(a.parts(), b.unsqueeze(-1)));
}
ComplexTensor mul(const ComplexTensor& a, Number b) { return ComplexTensor(mul(a.parts(), b)); }

ComplexTensor div(const ComplexTensor& a, const ComplexTensor& b) {
  const OpScope scope("div");
  const Tensor size = max(abs(b.parts().detach()), {-1}, true);  // squares of b / size neither overflow nor vanish
  const ComplexTensor scaled(div(b.parts(), size));
  const Tensor square_of = sum(square(scaled.parts()), {-1}, true);
  return ComplexTensor(div(div(mul(a, conj(scaled)).parts(), square_of), size));
}

ComplexTensor sum(const ComplexTensor& z, const std::vector<int64_t>& dims, bool keep_dims) {
  return reduced("sum", z, dims, [&](const Tensor& parts, const auto& all) { return sum(parts, all, keep_dims); });
}
ComplexTensor mean(const ComplexTensor& z, const std::vector<int64_t>& dims, bool keep_dims) {
  return reduced("mean", z, dims, [&](const Tensor& parts, const auto& all) { return mean(parts, all, keep_dims); });
}

ComplexTensor matmul(const ComplexTensor& a, const ComplexTensor& b) {
  const Tensor re = real(a), im = imag(a), other = real(b), other_im = imag(b);
  return joined(sub(matmul(re, other), matmul(im, other_im)), add(matmul(re, other_im), matmul(im, other)));
}

ComplexTensor einsum(std::string_view equation, const ComplexTensor& a, const ComplexTensor& b) {
  const Tensor re = real(a), im = imag(a), other = real(b), other_im = imag(b);
  return joined(sub(einsum(equation, {re, other}), einsum(equation, {im, other_im})),
                add(einsum(equation, {re, other_im}), einsum(equation, {im, other})));
}

ComplexTensor concat(const std::vector<ComplexTensor>& tensors, Integer dim) {
  WEFT_CHECK(!tensors.empty(), "concat: expected at least one tensor, got none");
  std::vector<Tensor> parts;
  for (const ComplexTensor& z : tensors) parts.push_back(z.parts());
  return ComplexTensor(concat(parts, wrap_dim("concat", dim, tensors[0].dim())));
}

ComplexTensor pad(const ComplexTensor& z, Integer dim, Integer before, Integer after) {
  return ComplexTensor(pad(z.parts(), wrap_dim("pad", dim, z.dim()), before, after));
}

Tensor angle(const ComplexTensor& z) { return atan2(imag(z), real(z)); }

}  // namespace weft
