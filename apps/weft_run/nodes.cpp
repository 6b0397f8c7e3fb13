// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_run/nodes.h"

#include <thread>
#include <utility>

#include "apps/support/flags.h"
#include "dist/rendezvous/message.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/tcp_store.h"
#include "kernels/error.h"

namespace weft::weft_run {
namespace {

using dist::Clock;
using dist::Milliseconds;
using dist::TimePoint;

constexpr Milliseconds kPatience{60'000};

/// Whether one of the addresses is this host's: a test binds to each for a moment.
bool is_here(const dist::Address& address) {
  dist::Listeners ignored;
  return dist::try_listen({address.host, 0}, dist::resolve(address), ignored) == 0;
}

}  // namespace

uint16_t free_port(const std::string& host) {
  dist::Listeners listeners;
  const dist::Address address{host, 0};
  const int error = dist::try_listen(address, dist::resolve(address), listeners);
  WEFT_CHECK(error == 0, "no free port at ", host, ": ", dist::error_words(error));
  return listeners.address.port;
}

Nodes::Nodes(const Options& options, int local_ranks, const std::string& secret)
    : options_(options), ranks_(local_ranks) {
  if (options.nodes == 1) return;
  meet(secret);
  node_ = claim_number();
  const std::string who = str("node ", node_);
  const dist::Address found = dist::parse_address("store", store_->endpoint().text());
  const Milliseconds timeout = std::chrono::seconds(options.start_timeout);
  membership_ = std::make_unique<dist::TcpMembership>(dist::find_store(found, secret, who, kPatience, 1),
                                                      dist::TcpMembershipOptions{.rank = node_, .size = options.nodes});
  membership_->on_failure([this](const dist::Failure& failure) {
    const std::lock_guard lock(mutex_);
    lost_ =
        "the launcher of a node has ended: node" + failure.reason.substr(std::min<size_t>(4, failure.reason.size()));
  });
  try {
    membership_->wait_for_all(timeout);
  } catch (const Error& error) {
    weft::fail("not all nodes have come to ", *options.meeting, ": ", error.what());
  }
  store_->set(str("ranks/", node_), std::to_string(local_ranks));
  if (node_ == 0) {
    const std::vector<std::string> texts = store_->get_all("ranks", options.nodes, kPatience);
    std::vector<std::string> firsts;
    ranks_ = 0;
    for (size_t other = 0; other < texts.size(); ++other) {
      firsts.push_back(std::to_string(ranks_));
      ranks_ += static_cast<int>(support::parse_integer(str("node ", other), texts[other]));
    }
    store_->set("ranks", std::to_string(ranks_));
    store_->set_all("first rank", firsts);
  }
  const auto number = [&](const std::string& key) {
    return static_cast<int>(support::parse_integer("node 0", store_->get(key, kPatience)));
  };
  first_rank_ = number(str("first rank/", node_));
  ranks_ = number("ranks");
}

/// The launcher that first reaches its own host's address opens the store, the others find it. A port is skipped only
/// when it is known to be another program's.
void Nodes::meet(const std::string& secret) {
  const dist::Address& meeting = *options_.meeting;
  const std::string who = options_.node_rank ? str("node ", *options_.node_rank) : str("a node");
  const Milliseconds timeout = std::chrono::seconds(options_.start_timeout);
  const TimePoint deadline = Clock::now() + timeout;
  const bool may_open = (!options_.node_rank || *options_.node_rank == 0) && is_here(meeting);
  for (int i = 0; may_open && i < dist::kStorePorts && meeting.port + i <= 65535;) {
    const dist::Address here{meeting.host, static_cast<uint16_t>(meeting.port + i)};
    dist::StoreConnection connection;
    std::string why;
    for (const dist::Endpoint& endpoint : dist::resolve(here))
      if (dist::try_store(endpoint, secret, std::min(deadline, Clock::now() + std::chrono::seconds(2)), connection,
                          why)) {
        store_ = std::make_unique<dist::TcpStore>(std::move(connection), who);
        return;
      }
    const bool nobody = why.find("cannot be reached") != std::string::npos;
    if (!nobody) {
      ++i;  // another program's
      continue;
    }
    try {
      // On exactly this port: the loop tries its neighbours.
      server_ = std::make_unique<dist::StoreServer>(
          here, dist::StoreServerOptions{.size = options_.nodes, .secret = secret, .ports = 1});
      break;
    } catch (const Error&) {
      WEFT_CHECK(Clock::now() < deadline, "cannot open the meeting point ", here);
      std::this_thread::sleep_for(Milliseconds(20));  // another launcher of this host was faster: find its store
    }
  }
  const dist::Address at = server_ ? server_->address() : meeting;
  store_ = std::make_unique<dist::TcpStore>(dist::find_store(at, secret, who, timeout, server_ ? 1 : dist::kStorePorts),
                                            who);
}

int Nodes::claim_number() {
  if (server_) store_->set("expected", std::to_string(options_.nodes));
  const std::string expected = store_->get("expected", kPatience);
  WEFT_CHECK(expected == std::to_string(options_.nodes), "the launcher at ", *options_.meeting, " expects --nnodes ",
             expected, ", this one ", options_.nodes);
  if (options_.node_rank) {
    store_->set("numbered", "1");
    return *options_.node_rank;
  }
  // The node that opened the store is node 0, to whose host the ranks connect.
  const int number = server_ ? 0 : static_cast<int>(store_->add("nodes", 1));
  WEFT_CHECK(!store_->has("numbered"), "some nodes have a --node-rank, this one has none: give it to all, or to none");
  WEFT_CHECK(number < options_.nodes, "expected ", options_.nodes, " nodes at ", *options_.meeting, ", got one more");
  return number;
}

dist::Address Nodes::master_of(int round) {
  dist::Address master{"127.0.0.1", 0};
  if (options_.meeting) master.host = options_.meeting->host;
  if (options_.master && !options_.master->host.empty()) master.host = options_.master->host;
  if (options_.master) master.port = options_.master->port;
  if (master.port != 0) return master;
  if (!store_) {
    master.port = free_port(master.host);
    return master;
  }
  const std::string key = str("port/", round);
  if (node_ == 0) store_->set(key, std::to_string(free_port(master.host)));
  master.port = dist::parse_port("store", store_->get(key, kPatience));
  return master;
}

void Nodes::fail(int round, const RoundFailure& failure) {
  if (!store_) {
    if (!alone_) alone_ = failure;
    return;
  }
  if (store_->add(str("failures/", round), 1) != 1) return;
  dist::MessageWriter message(dist::MessageKind::set);
  store_->set(str("failure/", round),
              message.number(failure.code).number(failure.may_restart).text(failure.text).frame().substr(4));
}

std::optional<RoundFailure> Nodes::failure(int round) {
  if (!store_) return std::exchange(alone_, std::nullopt);
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.empty()) return RoundFailure{1, false, lost_};
  }
  if (round > 0 && store_->has("left")) return RoundFailure{1, false, store_->get("left", kPatience)};
  if (!store_->has(str("failure/", round))) return std::nullopt;
  const std::string bytes = store_->get(str("failure/", round), kPatience);
  dist::MessageReader message(bytes);
  RoundFailure failure;
  failure.code = static_cast<int>(message.number());
  failure.may_restart = message.number() != 0;
  failure.text = message.text();
  return failure;
}

bool Nodes::finished(int round) {
  if (!store_) return true;
  const std::string count = str("done/", round), all = str("all done/", round);
  if (!std::exchange(done_, true) && store_->add(count, 1) == options_.nodes) store_->set(all, "1");
  return store_->has(all);
}

bool Nodes::some_finished(int round) { return store_ && store_->add(str("done/", round), 0) > 0; }

bool Nodes::wait_until_stopped(int round, bool may_restart, const std::function<bool()>& interrupted) {
  done_ = false;
  if (!store_) return may_restart;
  if (!may_restart) store_->set("last round", "1");  // before this node counts, so that all nodes decide the same
  const std::string count = str("stopped/", round), all = str("all stopped/", round);
  if (store_->add(count, 1) == options_.nodes) store_->set(all, "1");
  for (bool may_leave = true; !store_->has(all);) {
    {
      const std::lock_guard lock(mutex_);
      if (!lost_.empty()) return false;
    }
    if (may_leave && interrupted()) {
      // A node that leaves counts no more, so that the others do not restart; once all have stopped it is too late.
      may_leave = store_->add(count, -1) < options_.nodes - 1;
      if (may_leave) store_->set("left", str("node ", node_, " was asked to end, and has left"));
    }
    if (store_->has("left")) return false;
    std::this_thread::sleep_for(Milliseconds(50));
  }
  return !store_->has("last round");
}

void Nodes::leave() {
  if (membership_) membership_->leave();
}

}  // namespace weft::weft_run
