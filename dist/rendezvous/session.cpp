// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/session.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <thread>

#include "dist/rendezvous/address.h"
#include "dist/rendezvous/crypto.h"
#include "dist/rendezvous/file_store.h"
#include "dist/rendezvous/handshake.h"
#include "dist/rendezvous/mpi_library.h"
#include "dist/rendezvous/socket.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

std::atomic<JobState> state_of_job{JobState::none};
static_assert(decltype(state_of_job)::is_always_lock_free, "signal handlers ask");

Milliseconds left_until(TimePoint deadline) {
  return std::max(Milliseconds(1), std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()));
}

}  // namespace

JobState job_state() { return state_of_job; }

Session::Session(const LaunchEnvironment& environment, const EnvironmentVariables& variables, Milliseconds timeout)
    : rank_(environment.rank), exceptions_(std::uncaught_exceptions()) {
  state_of_job = JobState::meeting;
  const TimePoint deadline = Clock::now() + timeout;
  const auto folder = variables.find("WEFT_RENDEZVOUS");
  const bool in_folder = folder != variables.end() && !folder->second.empty();
  // Only processes that MPI's launcher started may use MPI.
  const bool by_mpi =
      !in_folder && environment.master.host.empty() && environment.is_mpi_rank && variables.contains("PMIX_RANK");
  // Ranks of an earlier start of the same job must not connect. Nor must ranks of another job of this user, which look
  // for its rank 0 on the ports after their own MASTER_PORT.
  secret_ = keyed_hash(
      in_folder ? job_secret(variables, environment.job, std::filesystem::path(folder->second) / "cookie")
                : job_secret(variables, environment.job),
      str("start ", environment.restarts, in_folder || by_mpi ? "" : str(" at port ", environment.master.port)));
  const std::string who = str("rank ", rank_);
  LaunchEnvironment place = environment;
  if (by_mpi) place.master = meet_over_mpi(environment, deadline);
  StoreConnection connection =
      in_folder ? meet_in_folder(folder->second, environment, deadline) : meet_at_master(place, deadline);
  const Address found = parse_address("store", connection.endpoint.text());
  // A server that is stopped ends the others within their time, not within a multiple of it.
  store_ =
      std::make_unique<TcpStore>(std::move(connection), who, std::min<Milliseconds>(std::chrono::seconds(30), timeout));
  membership_ = std::make_unique<TcpMembership>(
      find_store(found, secret_, who, left_until(deadline), 1),
      TcpMembershipOptions{.rank = rank_, .size = environment.size, .joining = left_until(deadline)});
  membership_->on_failure([this](const Failure& failure) {
    state_of_job = JobState::failed;
    if (met_over_mpi_) abandon_mpi();
    {
      const std::lock_guard lock(mutex_);
      failure_ = failure.reason;
    }
    store_->end_waits(failure.reason);
  });
  wait_for_others(environment, timeout, deadline);
  JobState expected = JobState::meeting;
  state_of_job.compare_exchange_strong(expected, JobState::complete);  // unless one has failed meanwhile
}

/// Rank 0 says early for whom it waits: perhaps nobody starts the others, and its variables are left over from a shell.
void Session::wait_for_others(const LaunchEnvironment& environment, Milliseconds timeout, TimePoint deadline) {
  if (rank_ > 0) return membership_->wait_for_all(left_until(deadline));
  try {
    membership_->wait_for_all(std::min<Milliseconds>(std::chrono::seconds(10), timeout / 2));
  } catch (const Error& error) {
    if (job_state() == JobState::failed || Clock::now() >= deadline) throw;
    std::fprintf(stderr, "init: rank 0 of %d (%s) still waits. %s; %.3g s are left\n", environment.size,
                 environment.launcher.c_str(), error.what(), static_cast<double>(left_until(deadline).count()) / 1e3);
    membership_->wait_for_all(left_until(deadline));
  }
}

void Session::serve(const Address& address, const LaunchEnvironment& environment) {
  server_ = std::make_unique<StoreServer>(address, StoreServerOptions{.size = environment.size, .secret = secret_});
  if (address.port != 0 && server_->address().port != address.port)
    std::fprintf(
        stderr,
        "store: port %d of %s is taken by another program (a launcher's own store, or another job); rank 0 listens "
        "on port %d, and the other ranks find it there by its proof\n",
        address.port, address.host.c_str(), server_->address().port);
  if (server_->is_loopback() && environment.nodes > 1)
    std::fprintf(stderr, "store: %s is the loopback address of %s: ranks on other hosts cannot reach it\n",
                 address.host.c_str(), host_name().c_str());
}

StoreConnection Session::meet_at_master(const LaunchEnvironment& environment, TimePoint deadline) {
  WEFT_CHECK(
      !environment.master.host.empty(), "init: ", environment.launcher, " has started ", environment.size,
      " ranks on several hosts, and no variable names rank 0's host. Set MASTER_ADDR to its host on all ranks, as in "
      "mpirun -x MASTER_ADDR=HOST, or WEFT_RENDEZVOUS to a folder that all hosts share");
  if (rank_ == 0 && !server_) serve(environment.master, environment);
  return find_store(server_ ? server_->address() : environment.master, secret_, str("rank ", rank_),
                    left_until(deadline), server_ || met_over_mpi_ ? 1 : kStorePorts);
}

/// The environment does not name rank 0's host, but MPI knows its ranks: rank 0 listens on an address that the other
/// hosts reach, and sends it to them through MPI. An empty host: this process is no MPI rank.
Address Session::meet_over_mpi(const LaunchEnvironment& environment, TimePoint deadline) {
  const std::vector<std::string> cards = mpi_all_gather_text(host_card(), rank_, environment.size, deadline);
  if (cards.empty()) return {};
  met_over_mpi_ = true;
  std::string where, error;
  if (rank_ == 0) {
    try {
      const std::vector<std::string> others = addresses_elsewhere(cards);
      serve({others.empty() ? "127.0.0.1" : address_towards(others), 0}, environment);
      where = str(server_->address());
    } catch (const Error& failure) {
      error = failure.what();  // the other ranks report it too
    }
  }
  const std::string said =
      mpi_all_gather_text(error.empty() ? where : "error " + error, rank_, environment.size, deadline).front();
  WEFT_CHECK(!said.starts_with("error "), said.substr(6));
  return parse_address("init: rank 0 over MPI", said);
}

/// Rank 0 writes its address into the folder. An earlier job's address leads nowhere, or to a server with another
/// secret: then the other ranks read again.
StoreConnection Session::meet_in_folder(const std::string& folder, const LaunchEnvironment& environment,
                                        TimePoint deadline) {
  FileStore files(folder);
  const std::string key = str("store ", environment.job, " start ", environment.restarts).substr(0, Store::kMaxKey);
  if (rank_ == 0) {
    Address address{environment.one_node() ? "127.0.0.1" : environment.master.host, 0};
    const std::vector<std::string> own = local_addresses();
    WEFT_CHECK(!address.host.empty() || !own.empty(), "init: ", host_name(), " has no address but loopback's");
    if (address.host.empty()) address.host = own[0];
    serve(address, environment);
    files.set(key, str(server_->address()));
    return find_store(server_->address(), secret_, "rank 0", left_until(deadline), 1);
  }
  while (true) {
    const Address address = parse_address("WEFT_RENDEZVOUS", files.get(key, left_until(deadline)));
    try {
      return find_store(address, secret_, str("rank ", rank_), std::min(left_until(deadline), Milliseconds(1000)), 1);
    } catch (const Error&) {
      if (Clock::now() >= deadline) throw;
    }
  }
}

Session::~Session() {
  if (ended_) return;
  if (std::uncaught_exceptions() > exceptions_) give_up("");
  end();
}

void Session::give_up(const std::string& error) {
  if (met_over_mpi_) abandon_mpi();
  membership_->announce(
      str("rank ", rank_, " on ", host_name(), " has ended with an error", error.empty() ? "" : ": ", error));
  end();
}

void Session::fail_waiting(const std::string& key, Milliseconds timeout) {
  std::string failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  WEFT_CHECK(failure.empty(), "init: ", failure);
  const std::string silence = silence_in(membership_->states(kQuietSeconds), kQuietSeconds);
  fail("init: no rank has set '", key, "' within ", static_cast<double>(timeout.count()) / 1e3, " s",
       silence.empty() ? "" : "; ", silence);
}

std::string Session::wait_for(const std::string& key, Milliseconds timeout) {
  const std::optional<std::string> value = store_->find(key, timeout);
  if (!value) fail_waiting(key, timeout);
  return *value;
}

std::vector<std::string> Session::wait_for_all(const std::string& prefix, int count, Milliseconds timeout) {
  std::vector<std::string> values = store_->find_all(prefix, count, timeout);
  if (values.size() < static_cast<size_t>(count)) fail_waiting(str(prefix, '/', values.size()), timeout);
  return values;
}

void Session::end() {
  if (ended_.exchange(true)) return;
  membership_->leave();
}

}  // namespace weft::dist
