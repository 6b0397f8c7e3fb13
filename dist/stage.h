// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <list>
#include <vector>

#include "dist/collective.h"
#include "dist/staging.h"
#include "dist/transport.h"

namespace weft::dist {

/// The collective on host memory: the tensors' own on the CPU, pinned copies of a GPU's (in the staging of its device,
/// made when it is first needed), each rank's factor applied. Waits for the copies. `ready`: when a GPU's tensors hold
/// their values. `scratch` takes an input that the factor must not change.
HostCollective stage_in(const Collective& collective, const Event* ready, std::list<Staging>& stagings,
                        std::vector<std::byte>& scratch, int size);

/// Copies the result back to the device, and waits for that.
void stage_out(const Collective& collective, const HostCollective& host, std::list<Staging>& stagings);

}  // namespace weft::dist
