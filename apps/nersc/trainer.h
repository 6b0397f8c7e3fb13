// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::nersc {

/// The body of train_single_gpu, and of train_multi_gpu (`several`). Returns the exit code.
int train(int argc, char** argv, bool several);

}  // namespace weft::nersc
