// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "dist/group/group_record.h"
#include "dist/group/link.h"
#include "dist/group/process_group.h"
#include "dist/group/tcp_mesh.h"

namespace weft::dist {

// Each in a file of its name, or in the stub no_NAME.cpp whose error says how to build it in. Collective: all ranks of
// the record call them.

ProcessGroupPtr make_tcp_group(GroupRecordPtr record, std::shared_ptr<Store> store);
ProcessGroupPtr make_mpi_group(GroupRecordPtr record, std::shared_ptr<Store> store);
ProcessGroupPtr make_nccl_group(GroupRecordPtr record, std::shared_ptr<Store> store);

/// A group whose collectives run on host memory: a communication thread of its own takes them in order. Tensors of a
/// GPU go through pinned memory. `backend` must be a string literal.
ProcessGroupPtr make_host_group(GroupRecordPtr record, std::unique_ptr<Link> link, std::string_view backend);

/// Whether a waiting call may hold back later work of this rank's GPU, in any group. A kernel of NCCL waits in its
/// stream's hardware queue, and streams share a queue where there are fewer than a GPU has.
bool blocks_device(const ProcessGroup& group);

/// Connects all ranks with each other over TCP. Errors: as connect_ranks().
std::unique_ptr<Link> make_tcp_link(const TcpMeshOptions& options, Link::Deadline deadline);

}  // namespace weft::dist
