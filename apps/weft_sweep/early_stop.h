// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include "apps/support/run_reader.h"
#include "apps/weft_sweep/sweep.h"

namespace weft::weft_sweep {

/// Successive halving without waiting (ASHA: Li et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys
/// 2020), in the form that stops runs instead of continuing them. Checks come after r, r eta, r eta^2, … values of the
/// metric (r = min_iter). Only the best 1/eta of the runs so far go on (at least one).
/// Its only input is the metrics in the points' folders, so the tasks of a job array agree without talking.
class EarlyStop {
 public:
  explicit EarlyStop(const Sweep& sweep);
  ~EarlyStop();

  /// Reads the point's new metrics; true if it came so far for the first time, and is not among the best.
  bool loses(size_t point);

 private:
  struct Run {
    std::unique_ptr<support::RunReader> reader;
    int64_t next = 0;  ///< how many values it needs for the next decision
  };
  const support::Curve* curve(size_t point);
  std::optional<double> value_after(size_t point, int64_t count);

  const Sweep& sweep_;
  std::map<size_t, Run> runs_;
};

}  // namespace weft::weft_sweep
