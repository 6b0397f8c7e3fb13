// SPDX-License-Identifier: Apache-2.0
#include "tests/dist/ranks.h"

namespace weft::dist::testing {

std::vector<std::string> backends() { return {"threads"}; }

void run_on(const std::string& backend, int size, const std::function<void(const ProcessGroupPtr&)>& function,
            const GroupOptions& options) {
  WEFT_CHECK(backend == "threads", "run_on: unknown backend ", backend);
  run_ranks(size, function, options);
}

}  // namespace weft::dist::testing
