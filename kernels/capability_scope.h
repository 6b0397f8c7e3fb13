// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>

// For tests: a GPU passes for a lesser one, on every thread.

namespace weft::kernels {

namespace detail {

struct Limit {
  std::atomic<int> highest{0};  ///< 0: none

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

/// While it lives, kernels are chosen as for a GPU of at most this compute capability (80: an A100's).
using CapabilityScope = detail::LimitScope<detail::capability_limit>;
/// While it lives, grids are as large as for at most so many multiprocessors: a block gets more tiles.
using MultiprocessorScope = detail::LimitScope<detail::multiprocessor_limit>;

inline int limited_capability(int real) { return detail::capability_limit.of(real); }
inline int limited_multiprocessors(int real) { return detail::multiprocessor_limit.of(real); }

}  // namespace weft::kernels
