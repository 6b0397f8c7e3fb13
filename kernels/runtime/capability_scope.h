// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>

// For tests: limits a GPU's apparent capability, on every thread.

namespace weft::kernels {

namespace detail {

struct Limit {
  std::atomic<int> highest{0};  ///< 0: no limit

  int of(int real) const {
    const int most = highest;
    return most == 0 ? real : std::min(real, most);
  }
};
inline Limit capability_limit, multiprocessor_limit;

template <Limit& limit>
class LimitScope {
 public:
  explicit LimitScope(int highest) : before_(limit.highest.exchange(highest)) {}
  ~LimitScope() { limit.highest = before_; }
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  int before_;
};

}  // namespace detail

/// While an object lives, kernels are selected for at most this compute capability (80: an A100's).
using CapabilityScope = detail::LimitScope<detail::capability_limit>;
/// While an object lives, grids are sized for at most this number of SMs: each block gets more tiles.
using MultiprocessorScope = detail::LimitScope<detail::multiprocessor_limit>;

inline int limited_capability(int real) { return detail::capability_limit.of(real); }
inline int limited_multiprocessors(int real) { return detail::multiprocessor_limit.of(real); }

}  // namespace weft::kernels
