// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>

#include "benchmarks/dist/raw.h"

namespace weft::benchmarks {

RawCollectives raw_mpi() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto part = [size](size_t count) { return static_cast<int>(count) / size; };
  return {[](float* x, size_t count) {
            MPI_Allreduce(MPI_IN_PLACE, x, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
          },
          [part](float* x, const float* y, size_t count) {
            MPI_Allgather(y, part(count), MPI_FLOAT, x, part(count), MPI_FLOAT, MPI_COMM_WORLD);
          },
          [part](float* y, float* x, size_t count) {
            MPI_Reduce_scatter_block(x, y, part(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
          }};
}

}  // namespace weft::benchmarks
