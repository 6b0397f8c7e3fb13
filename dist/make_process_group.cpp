// SPDX-License-Identifier: Apache-2.0
#include "dist/backends.h"

namespace weft::dist {

ProcessGroupPtr make_process_group(const std::string& backend, int rank, int size, std::shared_ptr<Store> store,
                                   std::shared_ptr<Membership> membership, const GroupOptions& options) {
  WEFT_CHECK(size > 0 && rank >= 0 && rank < size, "process group: rank ", rank, " of ", size, " ranks cannot be");
  WEFT_CHECK(backend != "threads", "process group: the ranks of backend threads are made by run_ranks()");
  WEFT_CHECK(backend == "gloo" || backend == "mpi" || backend == "nccl",
             "process group: backend: expected gloo, mpi or nccl, got '", backend, "'");
  auto record = std::make_shared<GroupRecord>("world", rank, size, options, std::move(membership));
  if (backend == "gloo") return make_gloo_group(std::move(record), std::move(store));
  if (backend == "mpi") return make_mpi_group(std::move(record), std::move(store));
  return make_nccl_group(std::move(record), std::move(store));
}

}  // namespace weft::dist
