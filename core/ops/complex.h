// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <complex>
#include <string_view>

#include "core/ops/binary.h"
#include "core/ops/index.h"
#include "core/tensor.h"

namespace weft {

/// A tensor of complex numbers: a real tensor whose last dimension holds the real and the imaginary part. Complex is a
/// type and no dtype, so that an op for real numbers does not compile with complex ones. Gradients flow through the
/// parts: a real loss has the gradient dL/d(re) + i dL/d(im), as PyTorch's. `dtype()` is the parts' dtype (f32:
/// complex64).
class ComplexTensor {
 public:
  ComplexTensor() = default;
  /// Shares the memory of `parts` [..., 2]. Errors: another last dimension, not f32 or f64.
  explicit ComplexTensor(Tensor parts);

  bool defined() const { return parts_.defined(); }
  /// [..., 2], the same memory: what optimizers, files and process groups take.
  const Tensor& parts() const { return parts_; }
  Shape sizes() const;
  int dim() const { return parts_.dim() - 1; }
  int64_t size(Integer d) const { return parts_.size(wrap_dim("size", d, dim())); }
  int64_t numel() const { return parts_.numel() / 2; }
  DType dtype() const { return parts_.dtype(); }
  Device device() const { return parts_.device(); }

  // As Tensor's.
  ComplexTensor reshape(const Shape& sizes) const;
  ComplexTensor permute(const Shape& order) const;
  ComplexTensor transpose(Integer a, Integer b) const;
  ComplexTensor slice(Integer dim, Integer start, Integer length, Integer step = 1) const;
  ComplexTensor select(Integer dim, Integer index) const;
  ComplexTensor index(std::vector<Index> at) const;
  ComplexTensor operator[](const Index& at) const { return index({at}); }
  ComplexTensor operator[](const std::vector<Index>& at) const { return index(at); }
  ComplexTensor unsqueeze(Integer dim) const;
  ComplexTensor squeeze(Integer dim) const;
  ComplexTensor expand(const Shape& sizes) const;
  ComplexTensor to(DType dtype) const { return ComplexTensor(parts_.to(dtype)); }
  ComplexTensor to(Device device) const { return ComplexTensor(parts_.to(device)); }
  ComplexTensor contiguous() const { return ComplexTensor(parts_.contiguous()); }
  ComplexTensor clone() const { return ComplexTensor(parts_.clone()); }
  ComplexTensor detach() const { return ComplexTensor(parts_.detach()); }

  /// All elements in row-major order; waits for the device.
  std::vector<std::complex<double>> to_vector() const;
  /// The single value. Errors: not one element.
  std::complex<double> item() const;

  /// `complex64[8,5] on cpu`
  std::string description() const;
  /// The description and the values: `1+2i`.
  friend std::ostream& operator<<(std::ostream& out, const ComplexTensor& z);

 private:
  Tensor parts_;
};

/// re + i im, with broadcasting. Errors: not f32 or f64.
ComplexTensor complex(const Tensor& re, const Tensor& im);
/// r e^(i angle)
ComplexTensor polar(const Tensor& r, const Tensor& angle);
/// The parts [..., 2] as complex numbers and back; views.
ComplexTensor view_as_complex(const Tensor& parts);
Tensor view_as_real(const ComplexTensor& z);
/// Views of the parts.
Tensor real(const ComplexTensor& z);
Tensor imag(const ComplexTensor& z);

/// |z|. The gradient at 0 is 0.
Tensor abs(const ComplexTensor& z);
ComplexTensor conj(const ComplexTensor& z);
ComplexTensor exp(const ComplexTensor& z);
ComplexTensor neg(const ComplexTensor& z);

// Element by element, with broadcasting.
ComplexTensor add(const ComplexTensor& a, const ComplexTensor& b);
ComplexTensor add(const ComplexTensor& a, const Tensor& b);
ComplexTensor sub(const ComplexTensor& a, const ComplexTensor& b);
ComplexTensor sub(const ComplexTensor& a, const Tensor& b);
ComplexTensor mul(const ComplexTensor& a, const ComplexTensor& b);
ComplexTensor mul(const ComplexTensor& a, const Tensor& b);
ComplexTensor mul(const ComplexTensor& a, Number b);
/// a / b without overflow in between; NaN where b is 0.
ComplexTensor div(const ComplexTensor& a, const ComplexTensor& b);

inline ComplexTensor operator-(const ComplexTensor& z) { return neg(z); }
inline ComplexTensor operator+(const ComplexTensor& a, const ComplexTensor& b) { return add(a, b); }
inline ComplexTensor operator+(const ComplexTensor& a, const Tensor& b) { return add(a, b); }
inline ComplexTensor operator+(const Tensor& a, const ComplexTensor& b) { return add(b, a); }
inline ComplexTensor operator-(const ComplexTensor& a, const ComplexTensor& b) { return sub(a, b); }
inline ComplexTensor operator-(const ComplexTensor& a, const Tensor& b) { return sub(a, b); }
inline ComplexTensor operator-(const Tensor& a, const ComplexTensor& b) { return add(neg(b), a); }
inline ComplexTensor operator*(const ComplexTensor& a, const ComplexTensor& b) { return mul(a, b); }
inline ComplexTensor operator*(const ComplexTensor& a, const Tensor& b) { return mul(a, b); }
inline ComplexTensor operator*(const Tensor& a, const ComplexTensor& b) { return mul(b, a); }
inline ComplexTensor operator*(const ComplexTensor& a, Number b) { return mul(a, b); }
inline ComplexTensor operator*(Number a, const ComplexTensor& b) { return mul(b, a); }
inline ComplexTensor operator/(const ComplexTensor& a, const ComplexTensor& b) { return div(a, b); }

/// As sum() and mean() of real tensors: `dims` count without the parts.
ComplexTensor sum(const ComplexTensor& z, const std::vector<int64_t>& dims = {}, bool keep_dims = false);
ComplexTensor mean(const ComplexTensor& z, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

/// As matmul() of real tensors, by four of them.
ComplexTensor matmul(const ComplexTensor& a, const ComplexTensor& b);
/// As einsum() of two real tensors, by four of them.
ComplexTensor einsum(std::string_view equation, const ComplexTensor& a, const ComplexTensor& b);
/// As concat() of real tensors: `dim` counts without the parts.
ComplexTensor concat(const std::vector<ComplexTensor>& tensors, Integer dim = 0);
/// x with zeros before and after along `dim`.
ComplexTensor pad(const ComplexTensor& z, Integer dim, Integer before, Integer after);

/// The angle of each number, from -pi to pi. The gradient at 0 is 0.
Tensor angle(const ComplexTensor& z);

}  // namespace weft
