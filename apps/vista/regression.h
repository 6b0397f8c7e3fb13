// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::vista {

/// The body of single_gpu, and of multinode (`several`). Returns the exit code.
int train(int argc, char** argv, bool several);

}  // namespace weft::vista
