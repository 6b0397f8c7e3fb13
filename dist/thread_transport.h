// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "dist/thread_board.h"

namespace weft::dist {

/// Ranks are threads of one process and read each other's memory: rank r reduces part r of everybody's tensor, and the
/// others copy it from there.
std::unique_ptr<Transport> make_thread_transport(std::shared_ptr<ThreadBoard> board, int rank);

}  // namespace weft::dist
