// SPDX-License-Identifier: Apache-2.0
#include "core/tensor.h"

#include <cmath>
#include <limits>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/ops/broadcast.h"
#include "core/promotion.h"
#include "core/trace.h"
#include "kernels/contracts/copy.h"
#include "kernels/contracts/fill.h"
#include "kernels/runtime/transfer.h"

namespace weft {
namespace {

kernels::View dense_view(void* data, DType dtype, const Shape& sizes) {
  kernels::View view;
  view.data = data;
  view.dtype = dtype;
  view.rank = sizes.rank();
  int64_t stride = 1;
  for (int d = sizes.rank() - 1; d >= 0; --d) {
    view.sizes[d] = sizes[d];
    view.strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return view;
}

size_t byte_count(const Shape& sizes, DType dtype) {
  size_t bytes = size_of(dtype);
  for (const int64_t size : sizes) {
    WEFT_CHECK(size >= 0, "tensor: sizes must not be negative, got ", sizes);
    WEFT_CHECK(!__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes), "tensor: ", sizes, " is too large");
  }
  return bytes;
}

/// A dense copy on the CPU of whatever `tensor` is.
Tensor host_copy(const Tensor& tensor) {
  const NoGrad no_grad;
  return tensor.contiguous().to(Device{});
}

/// Parameters of a sharded unit have no memory while the unit is not gathered: a use then is an error, not a crash.
void check_has_memory(const TensorImpl& impl) {
  if (impl.view.data != nullptr || impl.view.numel() == 0) return;
  const Tensor low = impl.autograd ? impl.autograd->compute_copy : Tensor();
  WEFT_CHECK(!low.defined(), current_op(), ": ", impl.view, " on ", impl.storage->device(), " is gathered in ",
             low.dtype(), " alone, which this op does not read. Take its module out of MixedPrecision::kinds");
  fail(current_op(), ": ", impl.view, " on ", impl.storage->device(),
       " has no memory now. A sharded parameter has it only while its unit runs");
}

}  // namespace

TensorImpl::TensorImpl(Ref<Storage> s, const kernels::View& v) { set(std::move(s), v); }
TensorImpl::~TensorImpl() = default;

void TensorImpl::set(Ref<Storage> s, const kernels::View& v) {
  storage = std::move(s);
  view = v;
  const void* const base = storage->data();
  offset_ = base && v.data ? static_cast<const char*>(v.data) - static_cast<const char*>(base) : 0;
  known_base_.store(base, std::memory_order_release);
}

void TensorImpl::look_up() {
  static std::mutex mutex;  // threads that share a model may all be the first
  const std::lock_guard lock(mutex);
  void* const base = storage->data();
  if (known_base_.load(std::memory_order_relaxed) == base) return;  // another was
  view.data = base ? static_cast<char*>(base) + offset_ : nullptr;
  known_base_.store(base, std::memory_order_release);
}

void Tensor::undefined(const char* method) {
  const std::string_view op = current_op();
  fail(method, ": expected a tensor, got none", op == "tensor" ? std::string() : str(" (in ", op, ")"),
       ". It was default-constructed, moved from, or stands for an argument that was left out: defined() tells");
}

Tensor Tensor::empty(const Shape& sizes, DType dtype, Device device) {
  auto storage = make_ref<Storage>(device, byte_count(sizes, dtype));
  const kernels::View view = dense_view(storage->data(), dtype, sizes);
  return Tensor(make_ref<TensorImpl>(std::move(storage), view));
}

Tensor Tensor::full(const Shape& sizes, Number value, DType dtype, Device device) {
  check_holds("full", dtype, value);
  Tensor result = empty(sizes, dtype, device);
  kernels::fill(result.queue(), result, value);
  return result;
}
Tensor Tensor::zeros(const Shape& sizes, DType dtype, Device device) { return full(sizes, 0, dtype, device); }
Tensor Tensor::ones(const Shape& sizes, DType dtype, Device device) { return full(sizes, 1, dtype, device); }

Tensor Tensor::arange(Integer n, DType dtype, Device device, Number start, Number step) {
  check_holds("arange", dtype, start);
  if (n > 1 && !weft::is_floating(dtype)) {
    check_holds("arange", DType::i64, step);
    int64_t last = 0;
    const bool fits = !__builtin_mul_overflow(int64_t{n} - 1, static_cast<int64_t>(step), &last) &&
                      !__builtin_add_overflow(last, static_cast<int64_t>(start), &last);
    WEFT_CHECK(fits, "arange: ", n, " numbers from ", start, " by ", step, " go beyond ", dtype);
    check_holds("arange", dtype, last);
  }
  Tensor result = empty({n}, dtype, device);
  kernels::arange(result.queue(), result, start, step);
  return result;
}

Tensor Tensor::from_host(const void* data, const Shape& sizes, DType dtype, Device device) {
  refuse_while_capturing("tensor from host values", device);
  Tensor result = empty(sizes, dtype, device);
  const kernels::Queue queue = result.queue();
  kernels::transfer(queue, "copy_to_device", result.raw_data(), data, result.nbytes());
  synchronize(device);  // the caller's memory may go away
  return result;
}

Tensor Tensor::wrap(void* data, const Shape& sizes, DType dtype, Device device, std::function<void()> release) {
  return Tensor(make_ref<TensorImpl>(make_ref<Storage>(device, data, byte_count(sizes, dtype), std::move(release)),
                                     dense_view(data, dtype, sizes)));
}

Tensor::operator const kernels::View&() const {
  static const kernels::View none = kernels::View::none();
  if (!impl_) return none;
  impl_->follow();
  if (impl_->view.data == nullptr) [[unlikely]]
    check_has_memory(*impl_);
  return impl_->view;
}

Tensor::operator bool() const {
  WEFT_CHECK(defined(), "condition: expected a tensor of one element, got none. defined() tells whether there is one");
  WEFT_CHECK(numel() == 1, "condition: expected one element, got ", *this, ". any() or all() of them is one");
  refuse_while_capturing("condition", device());
  return item<bool>();
}

template <class T>
T Tensor::item() const {
  WEFT_CHECK(numel() == 1, "item: expected one element, got ", *this);
  refuse_while_capturing("item", device());
  const Number number = is_floating() ? Number(to_vector<double>()[0]) : Number(to_vector<int64_t>()[0]);
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) check_holds("item", dtype_of<T>, number);
  const T value = static_cast<T>(number);
  if constexpr (std::is_same_v<T, float>)
    WEFT_CHECK(std::isfinite(value) || !std::isfinite(static_cast<double>(number)), "item: f32 does not hold ", number,
               ". Use item()");
  if constexpr (std::is_floating_point_v<T>)
    WEFT_CHECK(!number.is_whole() || (value < T(0x1p63) && static_cast<int64_t>(value) == static_cast<int64_t>(number)),
               "item: ", dtype_of<T>, " does not hold ", number, ". Use item<int64_t>()");
  return value;
}
template float Tensor::item<float>() const;
template double Tensor::item<double>() const;
template int64_t Tensor::item<int64_t>() const;
template int32_t Tensor::item<int32_t>() const;
template uint8_t Tensor::item<uint8_t>() const;
template bool Tensor::item<bool>() const;

namespace {

/// Whether static_cast<T> of the value is defined, and the value but for a fraction.
template <class T, class S>
bool is_in_range(S value) {
  if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, S> || std::is_same_v<T, bool>)
    return true;
  else if constexpr (std::is_floating_point_v<S>)  // the number after T's largest is a power of 2
    return std::trunc(value) >= static_cast<S>(std::numeric_limits<T>::min()) &&
           value < S(2) * static_cast<S>(std::numeric_limits<T>::max() / 2 + 1);
  else
    return std::in_range<T>(value);
}

}  // namespace

template <class T>
std::vector<T> Tensor::to_vector() const {
  refuse_while_capturing("to_vector", device());
  check_has_memory(known());
  const Tensor host = host_copy(*this);
  std::vector<T> values(static_cast<size_t>(numel()));
  with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(dtype(), "to_vector", [&]<class S>() {
    const S* source = host.data<S>();
    using Wide = std::conditional_t<std::is_same_v<S, bf16> || std::is_same_v<S, f16>, float,
                                    std::conditional_t<std::is_same_v<S, bool>, uint8_t, S>>;
    for (size_t i = 0; i < values.size(); ++i) {
      const Wide value{source[i]};
      WEFT_CHECK((is_in_range<T, Wide>(value)), "to_vector: ", dtype_of<T>, " does not hold ", +value);
      values[i] = static_cast<T>(value);
    }
  });
  return values;
}
template std::vector<bool> Tensor::to_vector() const;
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<int64_t> Tensor::to_vector() const;
template std::vector<int32_t> Tensor::to_vector() const;
template std::vector<uint8_t> Tensor::to_vector() const;

Tensor Tensor::alias(const kernels::View& view) const {
  if (known().view.data == nullptr) [[unlikely]]
    check_has_memory(*impl_);
  return Tensor(make_ref<TensorImpl>(impl_->storage, view));
}

void Tensor::set_data(const Tensor& data) const {
  WEFT_CHECK(data.sizes() == sizes(), "set_data: expected ", sizes(), ", got ", data);
  impl_->set(data.impl_->storage, data.impl_->view);
}

namespace {
void check_in_place(const char* op, const Tensor& x) {
  WEFT_CHECK(!(grad_enabled() && x.requires_grad()), op, ": ", x,
             " needs a gradient and cannot be changed in place while gradients are recorded. "
             "Wrap the change in weft::NoGrad");
}
}  // namespace

const Tensor& Tensor::fill_(Number value) const {
  check_in_place("fill_", *this);
  check_holds("fill_", dtype(), value);
  kernels::fill(queue(), *this, value);
  storage()->bump_version();
  return *this;
}

const Tensor& Tensor::copy_(const Tensor& source) const {
  check_in_place("copy_", *this);
  check_own_elements("copy_", *this);
  check_needs_no_gradient("copy_", source);
  const NoGrad no_grad;
  const Tensor local = apart_from(*this, source.to(device()));
  kernels::copy(queue(), *this, local.expand(sizes()));
  storage()->bump_version();
  return *this;
}

Tensor empty_like(const Tensor& x) { return Tensor::empty(x.sizes(), x.dtype(), x.device()); }
Tensor zeros_like(const Tensor& x) { return Tensor::zeros(x.sizes(), x.dtype(), x.device()); }

std::string Tensor::description() const { return defined() ? str(view(), " on ", device()) : "none"; }

}  // namespace weft
