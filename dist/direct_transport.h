// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "dist/link.h"

namespace weft::dist {

/// Collectives of messages. Every rank owns one part of a tensor that is reduced: all send it their values of that
/// part, it adds them in the order of the ranks, and sends the sums back. So each element has one order of addition
/// wherever it lies, bf16 and f16 are rounded once, and each rank sends 2 (n-1)/n of the tensor, as a ring does. Large
/// tensors travel in segments: one is reduced while the next is on its way.
///
/// Before a collective each rank tells its right neighbour what it calls; the data's slots depend on it, so ranks that
/// differ never take each other's data for their own.
std::unique_ptr<Transport> make_direct_transport(std::unique_ptr<Link> link, std::string group);

}  // namespace weft::dist
