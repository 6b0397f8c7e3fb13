// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "dist/link.h"

namespace weft::dist {

/// A communicator of its own among all ranks of MPI's world. Errors: ranks that do not come.
std::unique_ptr<Link> make_mpi_link(Transport::Deadline deadline);

}  // namespace weft::dist
