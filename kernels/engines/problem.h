// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/dtype.h"

namespace weft::kernels::vendor {

/// The identity of a problem, equal for equal calls of an op: named numbers (sizes, strides, dtypes). The key of plans
/// and of timings, in memory as it is and on disk as text.
class Problem {
 public:
  explicit Problem(const char* op) : op_(op) {}  ///< a string literal

  Problem& add(const char* name, int64_t value) { return add({name, value, false}); }
  Problem& add(const char* name, DType dtype) { return add({name, static_cast<int64_t>(dtype), true}); }

  const char* op() const { return op_; }
  /// `matmul in=bf16 out=f32 M=64 N=1000 K=512`: one line without tabs.
  std::string text() const;
  size_t hash() const;
  bool operator==(const Problem& other) const;

 private:
  struct Field {
    const char* name;
    int64_t value;
    bool is_dtype;
  };
  Problem& add(Field field);

  const char* op_;
  size_t count_ = 0;
  std::array<Field, 40> fields_;
};

struct ProblemHash {
  size_t operator()(const Problem& problem) const { return problem.hash(); }
};

}  // namespace weft::kernels::vendor
