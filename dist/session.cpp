// SPDX-License-Identifier: Apache-2.0
#include "dist/session.h"

#include <cstdio>
#include <exception>
#include <thread>

#include "dist/job_secret.h"
#include "dist/keyed_hash.h"
#include "dist/socket.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

Milliseconds left_until(TimePoint deadline) {
  return std::max(Milliseconds(1), std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()));
}

}  // namespace

Session::Session(const LaunchEnvironment& environment, const EnvironmentVariables& variables, Milliseconds timeout)
    : rank_(environment.rank), exceptions_(std::uncaught_exceptions()) {
  const TimePoint deadline = Clock::now() + timeout;
  WEFT_CHECK(
      !environment.master.host.empty(), "init: ", environment.launcher, " has started ", environment.size,
      " ranks on several hosts, and nothing says where rank 0 is. Set MASTER_ADDR to its host on all ranks, as in "
      "mpirun -x MASTER_ADDR=HOST");
  // Ranks of an earlier start of the same job must not get in.
  const std::string secret = keyed_hash(job_secret(variables, environment.job), str("start ", environment.restarts));
  const std::string who = str("rank ", rank_);
  Address address = environment.master;
  int ports = kStorePorts;
  if (rank_ == 0) {
    server_ = std::make_unique<StoreServer>(address, StoreServerOptions{.size = environment.size, .secret = secret});
    address = server_->address();
    ports = 1;
    if (server_->is_loopback() && environment.nodes > 1)
      std::fprintf(stderr, "store: %s is the loopback address of %s: ranks on other hosts cannot reach it\n",
                   address.host.c_str(), host_name().c_str());
  }
  StoreConnection connection = find_store(address, secret, who, left_until(deadline), ports);
  const Address found = parse_address("store", connection.endpoint.text());
  store_ = std::make_unique<TcpStore>(std::move(connection), who);
  membership_ = std::make_unique<TcpMembership>(find_store(found, secret, who, left_until(deadline), 1),
                                                TcpMembershipOptions{.rank = rank_, .size = environment.size});
  membership_->on_failure([this](const Failure& failure) {
    const std::lock_guard lock(mutex_);
    failure_ = failure.reason;
  });
  membership_->wait_for_all(left_until(deadline));
}

Session::~Session() {
  if (ended_) return;
  if (std::uncaught_exceptions() > exceptions_)
    membership_->announce(str("rank ", rank_, " on ", host_name(), " has ended with an error"));
  end();
}

std::string Session::wait_for(const std::string& key, Milliseconds timeout) {
  const TimePoint deadline = Clock::now() + timeout;
  Milliseconds pause(1);
  while (!store_->has(key)) {
    {
      const std::lock_guard lock(mutex_);
      WEFT_CHECK(failure_.empty(), "init: ", failure_);
    }
    WEFT_CHECK(Clock::now() < deadline, "init: no rank has set '", key, "' within ",
               static_cast<double>(timeout.count()) / 1e3, " s");
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, Milliseconds(100));
  }
  return store_->get(key, timeout);
}

void Session::end() {
  if (ended_.exchange(true)) return;
  membership_->leave();
}

}  // namespace weft::dist
