// SPDX-License-Identifier: Apache-2.0
#include "dist/group/backends.h"

namespace weft::dist {

ProcessGroupPtr make_mpi_group(GroupRecordPtr, std::shared_ptr<Store>) {
  fail(
      "process group: backend mpi: built without Open MPI. On Debian: apt-get install libopenmpi-dev openmpi-bin, then "
      "configure again");
}

}  // namespace weft::dist
