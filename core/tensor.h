// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "core/shape.h"
#include "core/storage.h"
#include "core/stream.h"
#include "kernels/contracts/unary_table.h"
#include "kernels/number.h"
#include "kernels/view.h"

namespace weft {

struct AutogradMeta;  // core/autograd.h
struct BackwardOptions;
class Node;
struct Index;   // core/ops/index.h
struct Sorted;  // core/ops/sort.h
struct Unique;

/// Dimensions of a member function: `x.sum(1)`, `x.sum({0, 2})`.
struct Dims : std::vector<int64_t> {
  using vector::vector;
  template <WholeType T>
  Dims(T one) : vector{static_cast<int64_t>(one)} {}  // NOLINT(google-explicit-constructor)
};

/// A Tensor points to this: a view into a storage, and autograd's record of the view. Storages move (core/storage.h):
/// Tensor's members look up where before they read the view.
struct TensorImpl : RefCounted {
  Ref<Storage> storage;
  kernels::View view;
  std::unique_ptr<AutogradMeta> autograd;
  TensorImpl(Ref<Storage> s, const kernels::View& v);
  ~TensorImpl() override;

  void set(Ref<Storage> s, const kernels::View& v);
  /// Sets view.data again if the storage has moved since.
  void follow() {
    if (known_base_.load(std::memory_order_acquire) != storage->data()) [[unlikely]]
      look_up();
  }

 private:
  void look_up();
  std::ptrdiff_t offset_ = 0;              // bytes from the storage's begin to the view
  std::atomic<const void*> known_base_{};  // the storage's data() that view.data was made of
};

/// An n-dimensional array on a device. Copying a Tensor shares it; `clone()` copies the data. A default-constructed
/// Tensor is undefined: it stands for "none" wherever an argument is optional.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  void operator=(const Tensor&) && = delete;  // `x[0] = y` would change no element: write x[0].copy_(y)
  void operator=(Number) && = delete;         // `x[0] = 1` would change no element: write x[0].fill_(1)

  // Creation. `empty` leaves the memory as it is.
  static Tensor empty(const Shape& sizes, DType dtype = DType::f32, Device device = {});
  static Tensor zeros(const Shape& sizes, DType dtype = DType::f32, Device device = {});
  static Tensor ones(const Shape& sizes, DType dtype = DType::f32, Device device = {});
  /// Errors, here and of fill_: an integer dtype that does not hold the value.
  static Tensor full(const Shape& sizes, Number value, DType dtype = DType::f32, Device device = {});
  /// start, start + step, … (n of them), rank 1. Errors: an integer dtype that does not hold all of them.
  static Tensor arange(Integer n, DType dtype = DType::i64, Device device = {}, Number start = 0, Number step = 1);
  /// Copies host values; the dtype is T's. Errors: values.size() differs from sizes.numel().
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& sizes, Device device = {}) {
    WEFT_CHECK(static_cast<int64_t>(values.size()) == sizes.numel(), "tensor: ", values.size(), " values do not fill ",
               sizes);
    if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> packs its elements
      const auto bytes = std::make_unique<bool[]>(values.size());
      std::copy(values.begin(), values.end(), bytes.get());
      return from_host(bytes.get(), sizes, DType::boolean, device);
    } else {
      return from_host(values.data(), sizes, dtype_of<T>, device);
    }
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, Device device = {}) {
    return from(values, Shape{static_cast<int64_t>(values.size())}, device);
  }
  /// Copies numel values of this dtype, row-major, from the host's memory.
  static Tensor from_host(const void* data, const Shape& sizes, DType dtype, Device device = {});
  /// Wraps another owner's memory (dense, row-major) without copying; `release` runs when the last tensor goes.
  static Tensor wrap(void* data, const Shape& sizes, DType dtype, Device device, std::function<void()> release = {});

  bool defined() const { return static_cast<bool>(impl_); }
  /// Whether its only element is not 0, as in `if (isnan(loss))`: waits for the device. Errors: not one element;
  /// undefined: `if (bias.defined())` asks for that.
  explicit operator bool() const;

  // Properties. Errors, here and below: an undefined tensor.
  DType dtype() const { return known().view.dtype; }
  Device device() const { return known().storage->device(); }
  int dim() const { return known().view.rank; }
  Shape sizes() const {
    const kernels::View& view = known().view;
    return Shape(std::span(view.sizes.data(), static_cast<size_t>(view.rank)));
  }
  int64_t size(Integer d) const {
    const kernels::View& view = known().view;
    return view.sizes[static_cast<size_t>(wrap_dim("size", d, view.rank))];
  }
  int64_t stride(Integer d) const {
    const kernels::View& view = known().view;
    return view.strides[static_cast<size_t>(wrap_dim("stride", d, view.rank))];
  }
  int64_t numel() const { return known().view.numel(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * size_of(dtype()); }
  bool is_contiguous() const { return known().view.is_contiguous(); }
  bool is_floating() const { return weft::is_floating(dtype()); }
  /// The sizes as a fixed-size array for structured bindings: `const auto [N, H, W, C] = x.dims<4>();`.
  template <int Rank>
  std::array<int64_t, Rank> dims() const {
    WEFT_CHECK(dim() == Rank, "expected ", Rank, " dimensions, got ", description());
    std::array<int64_t, Rank> result;
    for (int d = 0; d < Rank; ++d) result[d] = impl_->view.sizes[d];
    return result;
  }
  const kernels::View& view() const { return known().view; }
  /// The view, or View::none() for an undefined tensor: how optional arguments reach a kernel.
  operator const kernels::View&() const;  // NOLINT(google-explicit-constructor)
  /// The device's queue on this thread's current stream.
  kernels::Queue queue() const { return current_queue(device()); }
  const Ref<Storage>& storage() const { return known().storage; }
  TensorImpl* impl() const { return impl_.get(); }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  // Memory. data<T>() and raw_data() are device addresses; item() and to_vector() wait for the device.
  template <class T>
  T* data() const {
    return known().view.as<T>();
  }
  void* raw_data() const { return known().view.data; }
  /// The single value, converted to double. Errors: not one element; an i64 that a double does not hold.
  double item() const { return item<double>(); }
  /// As above, as another type of numbers, or as bool (not 0). Errors: not one element; T does not hold the value.
  template <class T>
  T item() const;
  /// All elements in row-major order, converted to T; fractions are cut off, as bool 0 is false. Errors: an element
  /// outside of T's range, NaN as an integer.
  template <class T>
  std::vector<T> to_vector() const;

  // Views that share memory; differentiable (core/ops/views.cpp).
  Tensor reshape(const Shape& sizes) const;  ///< one size may be -1; copies only when the strides demand it
  Tensor flatten(Integer first = 0, Integer last = -1) const;
  Tensor squeeze(Integer dim) const;
  Tensor unsqueeze(Integer dim) const;
  Tensor permute(const Shape& order) const;
  Tensor transpose(Integer a, Integer b) const;
  /// `length` elements from `start` on, where libtorch's slice() takes the end: there it is narrow().
  Tensor slice(Integer dim, Integer start, Integer length, Integer step = 1) const;
  Tensor narrow(Integer dim, Integer start, Integer length) const { return slice(dim, start, length); }
  Tensor select(Integer dim, Integer index) const;  ///< the slice at `index`, without the dimension
  Tensor expand(const Shape& sizes) const;          ///< broadcasts sizes of 1, stride 0; -1 keeps a size
  /// `x.index({0, Slice{2, -1}, mask})`: core/ops/index.h. A copy where a tensor is among the parts.
  Tensor index(const std::vector<Index>& at) const;
  Tensor operator[](const Index& at) const;               ///< index({at}): `x[0]`, `x[mask]`
  Tensor operator[](const std::vector<Index>& at) const;  ///< index(at): `x[{0, Slice{2, -1}}]`
  /// As reshape. Errors: strides that demand a copy.
  Tensor view(const Shape& sizes) const;
  /// A matrix with its dimensions swapped; itself with fewer dimensions. Errors: more than two.
  Tensor t() const;

  // The functions of the same names (core/ops) as members; `dims` as there, none: all.
#define WEFT_ROW(name, ...) Tensor name() const;
  WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW
#define WEFT_REDUCTION(name) Tensor name(const Dims& dims = {}, bool keep_dims = false) const;
  WEFT_REDUCTION(sum)
  WEFT_REDUCTION(prod)
  WEFT_REDUCTION(mean)
  WEFT_REDUCTION(max)
  WEFT_REDUCTION(min)
  WEFT_REDUCTION(norm)
  WEFT_REDUCTION(logsumexp)
  WEFT_REDUCTION(any)
  WEFT_REDUCTION(all)
  WEFT_REDUCTION(var)
  WEFT_REDUCTION(std)
#undef WEFT_REDUCTION
  Tensor argmax(Integer dim, bool keep_dims = false) const;
  Tensor argmin(Integer dim, bool keep_dims = false) const;
  Tensor cumsum(Integer dim) const;
  Tensor cumprod(Integer dim) const;
  Tensor softmax(Integer dim = -1) const;
  Tensor log_softmax(Integer dim = -1) const;
  Tensor pow(Number exponent) const;
  Tensor clamp(Number low, Number high) const;
  Tensor matmul(const Tensor& other) const;
  Tensor masked_fill(const Tensor& mask, Number value) const;
  Tensor masked_select(const Tensor& mask) const;
  Tensor maximum(const Tensor& other) const;
  Tensor minimum(const Tensor& other) const;
  Tensor gather(Integer dim, const Tensor& at) const;
  Tensor scatter(Integer dim, const Tensor& at, const Tensor& source) const;
  Tensor scatter_add(Integer dim, const Tensor& at, const Tensor& source) const;
  Tensor index_select(Integer dim, const Tensor& at) const;
  Tensor nonzero() const;
  Tensor tril(Integer diagonal = 0) const;
  Tensor triu(Integer diagonal = 0) const;
  Tensor diagonal(Integer offset = 0) const;
  Tensor movedim(Integer from, Integer to) const;
  Tensor repeat(const std::vector<int64_t>& counts) const;
  Tensor repeat_interleave(Integer count, Integer dim) const;
  Tensor flip(const Dims& dims) const;
  Tensor roll(Integer shift, Integer dim) const;
  std::vector<Tensor> chunk(Integer count, Integer dim = 0) const;
  std::vector<Tensor> split(Integer size, Integer dim = 0) const;
  std::vector<Tensor> unbind(Integer dim = 0) const;
  Sorted sort(Integer dim = -1, bool descending = false) const;
  Sorted topk(Integer k, Integer dim = -1, bool largest = true) const;
  Tensor argsort(Integer dim = -1, bool descending = false) const;
  Tensor median() const;
  Sorted median(Integer dim, bool keep_dims = false) const;
  Unique unique() const;

  // Copies; differentiable (core/ops/copy.cpp).
  Tensor to(DType dtype) const;    ///< itself when the dtype is the same
  Tensor to(Device device) const;  ///< itself when on that device already
  Tensor contiguous() const;       ///< itself when it is dense already
  Tensor clone() const;            ///< always a dense copy

  // In place; they raise the storage's version. Errors: a tensor that needs a gradient while gradients are recorded.
  const Tensor& fill_(Number value) const;
  const Tensor& zero_() const { return fill_(0); }
  const Tensor& copy_(const Tensor& source) const;  ///< converts dtype and device, broadcasts
  const Tensor& add_(const Tensor& other, Number alpha = 1) const;
  const Tensor& mul_(Number factor) const;

  // Autograd (core/autograd.cpp).
  bool requires_grad() const;
  /// Marks a leaf as wanting a gradient. Errors: not a floating tensor, not a leaf.
  const Tensor& requires_grad_(bool wanted = true) const;
  bool is_leaf() const;
  /// The gradient that backward() left (undefined before).
  Tensor grad() const;
  void set_grad(Tensor grad) const;  ///< Errors: not of this tensor's sizes, dtype and device.
  /// From here on the gradient counts as zero, and there is none for an optimizer to use (has_gradient()). Lazy: the
  /// next backward overwrites its memory, grad() fills it. Whoever holds what grad() returned keeps its values.
  void zero_grad() const;
  /// Whether backward(), set_grad() or a write into grad() has left a gradient since zero_grad(): PyTorch's `grad is
  /// not None`.
  bool has_gradient() const;
  /// Shares the data, knows no history.
  Tensor detach() const;
  /// Adds d(this)/d(leaf) * gradient to every leaf's grad(). `gradient` may be left out for one element.
  void backward(const Tensor& gradient = {}, bool retain_graph = false) const;
  /// `y.backward({}, BackwardOptions{.create_graph = true})`
  void backward(const Tensor& gradient, const BackwardOptions& options) const;
  /// Called with the gradient of this tensor during backward; may return a replacement (or an undefined tensor).
  void register_hook(std::function<Tensor(const Tensor&)> hook) const;
  /// Called after this leaf's grad() received its sum for one backward pass. DDP and FSDP hang here.
  void register_accumulated_hook(std::function<void(const Tensor&)> hook) const;

  /// A tensor with the same storage and another view into it, without history.
  Tensor alias(const kernels::View& view) const;
  /// Points this tensor at other data of the same sizes: how parameters become slices of flat buffers.
  void set_data(const Tensor& data) const;

  /// `f32[8,64] on cuda:0`, as errors name it; of an undefined tensor `none`.
  std::string description() const;
  /// Writes to_string(tensor).
  friend std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

 private:
  TensorImpl& known(const char* method = __builtin_FUNCTION()) const {
    if (!impl_) [[unlikely]]
      undefined(method);
    impl_->follow();
    return *impl_;
  }
  [[noreturn, gnu::cold]] static void undefined(const char* method);

  Ref<TensorImpl> impl_;
};

/// A contiguous tensor of x's sizes, dtype and device: uninitialised, or zeros.
Tensor empty_like(const Tensor& x);
Tensor zeros_like(const Tensor& x);

/// The description and the values, row by row, shortened in the middle of large dimensions: what a debugger wants to
/// see. Waits for the device.
std::string to_string(const Tensor& tensor, int edge_items = 3, int precision = 4);

/// The form of a part in messages: a tensor's description, any other part as it is.
template <class Part>
const Part& described(const Part& part) {
  return part;
}
inline std::string described(const Tensor& tensor) { return tensor.description(); }

/// As kernels/error.h's, where a part is a tensor: texts have its description, not its values.
template <class... Parts>
requires(std::is_same_v<Parts, Tensor> || ...) std::string str(const Parts&... parts) {
  return str(described(parts)...);
}
/// Throws Error with the text of the parts.
template <class... Parts>
requires(std::is_same_v<Parts, Tensor> || ...) [[noreturn]] void fail(const Parts&... parts) {
  throw Error(str(parts...));
}

}  // namespace weft
