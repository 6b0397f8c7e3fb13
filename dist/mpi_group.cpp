// SPDX-License-Identifier: Apache-2.0
#include "dist/backends.h"
#include "dist/direct_transport.h"
#include "dist/host_group.h"
#include "dist/mpi_library.h"
#include "dist/mpi_link.h"

namespace weft::dist {

ProcessGroupPtr make_mpi_group(GroupRecordPtr record, std::shared_ptr<Store>) {
  const MpiWorld world = begin_mpi();
  WEFT_CHECK(world.rank == record->rank && world.size == record->size, "process group mpi: this process is rank ",
             world.rank, " of ", world.size, " in MPI's world, but rank ", record->rank, " of ", record->size,
             " in the job. Start it with mpirun or srun --mpi=pmix, one process per rank, or use gloo");
  auto transport = make_direct_transport(make_mpi_link(Clock::now() + record->options.timeout), record->name);
  return make_host_group(std::move(record), std::move(transport), "mpi");
}

}  // namespace weft::dist
