// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/runtime/runtime.h"
#include "kernels/view.h"

namespace weft::tests {

using Sizes = std::vector<int64_t>;

inline int64_t count_of(const Sizes& sizes) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return n;
}

/// `value` as the dtype stores it.
inline double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::f64:
      return value;
    case DType::bf16:
      return static_cast<float>(bf16(static_cast<float>(value)));
    case DType::f16:
      return static_cast<float>(f16(static_cast<float>(value)));
    case DType::boolean:
      return value != 0;
    default:
      return static_cast<double>(static_cast<int64_t>(value));
  }
}

/// A dense array on a device, written and read by the host as f64. Without values it is poisoned: every byte is 0xff,
/// which is NaN in each floating dtype, so that an element which a kernel forgets fails its test. host() also fails the
/// test when a kernel has written to the bytes after the array.
class DeviceArray {
 public:
  DeviceArray(DeviceKind kind, DType dtype, Sizes sizes) : kind_(kind), dtype_(dtype), sizes_(std::move(sizes)) {
    bytes_ = static_cast<size_t>(count()) * size_of(dtype_);
    data_ = runtime().allocate(0, bytes_ + kGuard);
    poison();
  }
  DeviceArray(DeviceKind kind, DType dtype, Sizes sizes, const std::vector<double>& values)
      : DeviceArray(kind, dtype, std::move(sizes)) {
    WEFT_CHECK(static_cast<int64_t>(values.size()) == count(), "test: ", values.size(), " values for ", view());
    write(values);
  }
  DeviceArray(DeviceArray&& other) noexcept
      : kind_(other.kind_), dtype_(other.dtype_), sizes_(other.sizes_), bytes_(other.bytes_), data_(other.data_) {
    other.data_ = nullptr;
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    if (data_) runtime().release(0, data_);
  }

  int64_t count() const { return count_of(sizes_); }

  kernels::View view() const {
    kernels::View view{data_, dtype_, static_cast<int>(sizes_.size()), {}, {}};
    int64_t stride = 1;
    for (int d = view.rank - 1; d >= 0; --d) {
      view.sizes[d] = sizes_[d];
      view.strides[d] = stride;
      stride *= sizes_[d];
    }
    return view;
  }
  operator kernels::View() const { return view(); }  // NOLINT(google-explicit-constructor)

  void poison() {
    runtime().fill_bytes(0, data_, 0xff, bytes_ + kGuard, nullptr);
    runtime().synchronize_device(0);
  }

  void write(const std::vector<double>& values) {
    std::vector<char> bytes(bytes_);
    with_any([&]<class T>() {
      for (size_t i = 0; i < values.size(); ++i) {
        const T value = from_double<T>(values[i]);
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
      }
    });
    runtime().copy(0, data_, bytes.data(), bytes_, nullptr);
    runtime().synchronize_device(0);
  }

  std::vector<double> host() const {
    std::vector<char> bytes(bytes_ + kGuard);
    runtime().synchronize_device(0);
    runtime().copy(0, bytes.data(), data_, bytes.size(), nullptr);
    runtime().synchronize_device(0);
    EXPECT_EQ(std::string(bytes.data() + bytes_, kGuard), std::string(kGuard, '\xff')) << "written after " << view();
    std::vector<double> values(static_cast<size_t>(count()));
    with_any([&]<class T>() {
      for (size_t i = 0; i < values.size(); ++i) {
        using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
        Stored value;
        std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
        if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
          values[i] = static_cast<float>(value);
        else
          values[i] = static_cast<double>(value);
      }
    });
    return values;
  }

 private:
  static constexpr size_t kGuard = 64;  ///< bytes after the array

  template <class T>
  static T from_double(double value) {
    if constexpr (std::is_same_v<T, bool>)
      return value != 0;
    else if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      return T(static_cast<float>(value));
    else
      return static_cast<T>(value);
  }
  template <class Body>
  void with_any(Body&& body) const {
    with_dtype<float, double, bf16, f16, int64_t, int32_t, uint8_t, bool>(dtype_, "test", body);
  }
  kernels::Runtime& runtime() const { return kernels::runtime(kind_); }

  DeviceKind kind_;
  DType dtype_;
  Sizes sizes_;
  size_t bytes_ = 0;
  void* data_ = nullptr;
};

}  // namespace weft::tests
