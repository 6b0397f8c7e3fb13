// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/mpi_library.h"

namespace weft::dist {

void abandon_mpi() {}

std::vector<std::string> mpi_all_gather_text(const std::string&, int, int, TimePoint) { return {}; }

}  // namespace weft::dist
