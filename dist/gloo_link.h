// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "dist/group_record.h"
#include "dist/link.h"
#include "dist/store.h"

namespace weft::dist {

/// Connects all ranks with each other over TCP by Gloo; `prefix` is this group's place in the store. Errors: ranks that
/// do not come (named).
std::unique_ptr<Link> make_gloo_link(int rank, int size, std::shared_ptr<Store> store, const std::string& prefix,
                                     Transport::Deadline deadline);

}  // namespace weft::dist
