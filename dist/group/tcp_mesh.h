// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "dist/group/link.h"
#include "dist/group/process_group.h"
#include "dist/rendezvous/crypto.h"
#include "dist/rendezvous/membership.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store.h"

namespace weft::dist {

/// A connection to another rank of a group, after both have proven who they are. The seals protect tensors as
/// WEFT_SECURE says; with `off` they seal nothing.
struct TcpPeer {
  Descriptor socket;
  FrameSeal in, out;
};

/// Who forms a group over TCP, and by what they find each other.
struct TcpMeshOptions {
  int rank = 0, size = 1;
  std::shared_ptr<Store> store = {};
  std::string prefix = {};                      ///< this group's keys in the store
  std::shared_ptr<Membership> membership = {};  ///< may be null: then a dead rank shows as a deadline that passed
  Secure secure = Secure::automatic;
};

/// Connects each two ranks; all of them call it. Ranks on a single machine (same boot and network namespace) listen on
/// loopback. Else they listen on the address from which this machine reaches the others. The store has their addresses.
/// A connection counts when both sides have proven, by the store's secret, which ranks they are; any other is
/// refused in one line and disturbs nothing. Returns by rank; nothing at this rank's own place. Errors: a rank does not
/// come until the deadline, or dies (named); ranks with different WEFT_SECURE.
std::vector<TcpPeer> connect_ranks(const TcpMeshOptions& options, Link::Deadline deadline);

}  // namespace weft::dist
