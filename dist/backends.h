// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "dist/group_record.h"
#include "dist/process_group.h"

namespace weft::dist {

// Each in a file of its name, or in the stub no_NAME.cpp whose error says how to build it in. Collective: all ranks of
// the record call them.

ProcessGroupPtr make_gloo_group(GroupRecordPtr record, std::shared_ptr<Store> store);
ProcessGroupPtr make_mpi_group(GroupRecordPtr record, std::shared_ptr<Store> store);
ProcessGroupPtr make_nccl_group(GroupRecordPtr record, std::shared_ptr<Store> store);

}  // namespace weft::dist
