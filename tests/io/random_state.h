// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/state_dict.h"

namespace weft::test {

inline const DType kEveryDType[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                                    DType::i64, DType::i32, DType::u8,   DType::boolean};

/// A tensor of random bits (NaNs, denormals, all of them); bools are 0 or 1.
inline Tensor random_bits(const Shape& sizes, DType dtype, std::mt19937_64& random) {
  const Tensor tensor = Tensor::empty(sizes, dtype);
  auto* bytes = static_cast<uint8_t*>(tensor.raw_data());
  for (size_t i = 0; i < tensor.nbytes(); ++i)
    bytes[i] = static_cast<uint8_t>(random() & (dtype == DType::boolean ? 1 : 255));
  return tensor;
}

/// Every dtype in several shapes: scalar, empty, odd, eight-dimensional.
inline StateDict random_state(std::mt19937_64& random) {
  StateDict state;
  for (const DType dtype : kEveryDType) {
    int number = 0;
    for (const Shape& sizes :
         {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{7}, Shape{5, 3, 3, 3}, Shape{1, 1, 2, 1, 1, 3, 1, 1}})
      state.tensors.push_back({str("z.", name(dtype), ".", number++), random_bits(sizes, dtype, random)});
  }
  return state;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0;
}

inline void expect_same_tensors(const StateDict& a, const StateDict& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const NamedTensor& entry : a.tensors) {
    const Tensor other = b.tensor(entry.name);
    ASSERT_TRUE(other.defined()) << entry.name;
    EXPECT_TRUE(same_bits(entry.tensor, other)) << entry.name;
  }
}

}  // namespace weft::test
