// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string_view>

#include "dist/group_record.h"
#include "dist/process_group.h"
#include "dist/transport.h"

namespace weft::dist {

/// A group whose collectives run on host memory: a communication thread of its own takes them in order. Tensors of a
/// GPU go through pinned memory. `backend` must be a string literal.
ProcessGroupPtr make_host_group(GroupRecordPtr record, std::shared_ptr<Transport> transport, std::string_view backend);

}  // namespace weft::dist
