// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "dist/message.h"
#include "dist/socket.h"
#include "dist/store.h"

namespace weft::dist {

/// A connection to a job's server; both sides have proven that they know the secret.
struct StoreConnection {
  Descriptor socket;
  Endpoint endpoint;            ///< where the server listens
  FrameBuffer in{kMaxMessage};  ///< what has arrived already
};

/// Connects to a server and proves that this rank belongs to the job; `why` says what is there otherwise.
bool try_store(const Endpoint& endpoint, const std::string& secret, TimePoint deadline, StoreConnection& connection,
               std::string& why);

/// Looks for the job's server at all addresses of the host, from its port on for kStorePorts ports (one alone if
/// `ports` says so), again and again: rank 0 may come later. Errors: unknown host; not found in time, with what is at
/// each port. `who` opens the error: `rank 2`.
StoreConnection find_store(const Address& address, const std::string& secret, const std::string& who,
                           Milliseconds timeout, int ports);

}  // namespace weft::dist
