// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "io/safetensors.h"

namespace weft::golden {

/// Relative to the norm of the expected tensor, in f32.
inline constexpr double kTolerance = 1e-4;

/// One golden file: tensors by name.
class File {
 public:
  explicit File(const std::string& name) : name_(name) {
    const std::string path = std::string(WEFT_GOLDEN_FOLDER) + '/' + name + ".safetensors";
    for (const auto& [key, tensor] : read_safetensors(path).state.tensors) tensors_[key] = tensor;
  }
  bool has(const std::string& key) const { return tensors_.contains(key); }
  const Tensor& operator[](const std::string& key) const {
    const auto found = tensors_.find(key);
    WEFT_CHECK(found != tensors_.end(), name_, ": no tensor '", key, "'. Run generate.py");
    return found->second;
  }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

 private:
  std::string name_;
  std::map<std::string, Tensor> tensors_;
};

/// ||got - expected|| <= tolerance ||expected||; NaN fails.
inline void expect_close(const std::vector<double>& got, const std::vector<double>& expected, const std::string& what,
                         double tolerance = kTolerance) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  // A gradient that is zero in exact arithmetic is rounding noise on both sides: 1e-6 stands for it.
  EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(norm) + 1e-6) << what;
}

inline void expect_close(const Tensor& got, const Tensor& expected, const std::string& what,
                         double tolerance = kTolerance) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  expect_close(got.to_vector<double>(), expected.to_vector<double>(), what, tolerance);
}

}  // namespace weft::golden
