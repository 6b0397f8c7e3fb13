// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "apps/weft_sweep/ranking.h"

namespace weft::weft_sweep {

/// A sweep as one HTML page in the manner of weft-watch's (nothing loaded, no script): the curves of its best runs, the
/// best value after each point, the metric over each parameter that varies, and the ranking with links to the logs.
std::string results_page(const Sweep& sweep, const Ranking& ranking);

}  // namespace weft::weft_sweep
