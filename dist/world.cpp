// SPDX-License-Identifier: Apache-2.0
#include "dist/world.h"

#include <algorithm>
#include <atomic>
#include <charconv>

#include "core/printable.h"
#include "dist/local_address.h"
#include "dist/rank_place.h"
#include "dist/session.h"
#include "dist/socket.h"
#include "kernels/error.h"
#include "kernels/runtime.h"

namespace weft::dist {
namespace {

/// The seconds that a variable says, or `otherwise`.
Milliseconds seconds_of(const EnvironmentVariables& variables, const std::string& name, Milliseconds otherwise) {
  const auto found = variables.find(name);
  if (found == variables.end() || found->second.empty()) return otherwise;
  const std::string& text = found->second;
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  WEFT_CHECK(error == std::errc{} && end == text.data() + text.size() && seconds >= 1 && seconds <= 7 * 24 * 3600, name,
             ": expected seconds, 1 to 604800, got '", printable(text.substr(0, 100)), "'");
  return std::chrono::seconds(seconds);
}

}  // namespace

std::shared_ptr<Store> World::store() const {
  // Who holds the store holds the session.
  return session_ ? std::shared_ptr<Store>(session_, &session_->store()) : nullptr;
}

std::shared_ptr<Membership> World::membership() const {
  return session_ ? std::shared_ptr<Membership>(session_, &session_->membership()) : nullptr;
}

void World::end() {
  if (session_) session_->end();
}

World World::around(ProcessGroupPtr group, Device device) {
  World world;
  world.local_rank_ = group->rank();
  world.local_size_ = group->size();
  world.launcher_ = group->backend();
  world.device_ = device;
  world.group_ = std::move(group);
  return world;
}

namespace {
/// Those that this process sees; not asked for where none is wanted, so that a driver that cannot be used does not keep
/// the CPU from training.
int count_gpus(const std::string& device) {
  return device == "cpu" || device == "simt" ? 0 : kernels::runtime(DeviceKind::cuda).device_count();
}
}  // namespace

World init(const InitOptions& options) {
  const EnvironmentVariables variables = environment_variables();
  const LaunchEnvironment environment = read_launch_environment(variables);
  World world;
  world.launcher_ = environment.launcher;
  world.restarts_ = environment.restarts;
  if (environment.size == 1) {
    world.device_ = choose_device(options.device, 0, count_gpus(options.device));
    world.group_ = make_process_group_alone();
    return world;
  }

  static std::atomic<bool> called{false};
  WEFT_CHECK(!called.exchange(true),
             "init: this process has joined its job already. Call it once, and pass the World on");
  const Milliseconds timeout = seconds_of(variables, "WEFT_START_TIMEOUT", options.start_timeout);
  world.session_ = std::make_shared<Session>(environment, variables, timeout);
  RankPlace own;
  own.host = host_name();
  own.machine = host_identity();
  own.local_rank = environment.local_rank;
  const std::vector<RankPlace> hosts = exchange_places(*world.session_, "host", own, environment, timeout);
  if (own.local_rank < 0) own.local_rank = local_rank_of(hosts, environment.rank).rank;
  try {
    own.device = choose_device(options.device, own.local_rank, count_gpus(options.device));
    own.gpu = kernels::runtime(own.device.kind).identity(own.device.index);
    own.backend = choose_backend(options.backend, own.device, environment, built_backends());
  } catch (const Error& error) {
    own.error = error.what();  // the others shall hear of it now, not when their patience ends
  }
  const std::vector<RankPlace> places = exchange_places(*world.session_, "place", own, environment, timeout);
  check_places(places);
  world.device_ = own.device;
  world.local_rank_ = own.local_rank;
  world.local_size_ =
      environment.local_size > 0 ? environment.local_size : local_rank_of(places, environment.rank).size;
  GroupOptions group = options.group;
  group.timeout = seconds_of(variables, "WEFT_TIMEOUT", group.timeout);
  group.stall_report = seconds_of(variables, "WEFT_STALL_REPORT", std::min(group.stall_report, group.timeout / 2));
  group.gpu = own.device.index;
  world.group_ =
      make_process_group(own.backend, environment.rank, environment.size, world.store(), world.membership(), group);
  return world;
}

}  // namespace weft::dist
