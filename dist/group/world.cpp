// SPDX-License-Identifier: Apache-2.0
#include "dist/group/world.h"

#include <algorithm>
#include <atomic>
#include <charconv>

#include "core/choose_device.h"
#include "core/text.h"
#include "dist/rendezvous/address.h"
#include "dist/rendezvous/rank_place.h"
#include "dist/rendezvous/session.h"
#include "dist/rendezvous/socket.h"
#include "kernels/error.h"
#include "kernels/runtime/runtime.h"

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

/// The number of steps that WEFT_STEP_TIMES says; 0: none.
int64_t steps_of(const EnvironmentVariables& variables) {
  const auto found = variables.find("WEFT_STEP_TIMES");
  if (found == variables.end() || found->second.empty()) return 0;
  const std::string& text = found->second;
  int64_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  WEFT_CHECK(error == std::errc{} && end == text.data() + text.size() && steps >= 1 && steps <= 1'000'000'000,
             "WEFT_STEP_TIMES: expected steps, 1 to 1000000000, got '", printable(text.substr(0, 100)), "'");
  return steps;
}

Algorithms algorithms_of(const EnvironmentVariables& variables, Algorithms otherwise) {
  const auto found = variables.find("WEFT_COLLECTIVES");
  if (found == variables.end() || found->second.empty()) return otherwise;
  const bool library = found->second == "library";
  WEFT_CHECK(library || found->second == "own", "WEFT_COLLECTIVES: expected own or library, got '",
             printable(found->second.substr(0, 100)), "'");
  return library ? Algorithms::library : Algorithms::own;
}

Secure secure_of(const EnvironmentVariables& variables, Secure otherwise) {
  const auto found = variables.find("WEFT_SECURE");
  if (found == variables.end() || found->second.empty()) return otherwise;
  for (const Secure secure : {Secure::off, Secure::mac, Secure::encrypt})
    if (found->second == name(secure)) return secure;
  fail("WEFT_SECURE: expected off, mac or encrypt, got '", printable(found->second.substr(0, 100)), "'");
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
  WEFT_CHECK(group, "World::around: expected a group, got none");
  World world;
  world.local_rank_ = group->rank();
  world.local_size_ = group->size();
  world.launcher_ = group->backend();
  world.device_ = device;
  world.group_ = std::move(group);
  return world;
}

std::string World::describe() const {
  return str(size(), size() > 1 ? str(" over ", group_->backend()) : "",
             session_ && size() > 1 ? " (" + launcher_ + ")" : "");
}

std::vector<double> World::sum(const std::vector<double>& values, const std::string& what) const {
  if (size() == 1 || values.empty()) return values;
  const Tensor all = Tensor::from(values, where());
  const WorkPtr work = group_->all_reduce(all, ReduceOp::sum, {.name = what, .scale = {}});
  work->wait();
  std::vector<double> sums = all.to_vector<double>();
  work->wait();  // on a GPU the end comes only now, perhaps with an error
  return sums;
}

int64_t World::max(int64_t value, const std::string& what) const {
  if (size() == 1) return value;
  const Tensor all = Tensor::from(std::vector<int64_t>{value}, where());
  const WorkPtr work = group_->all_reduce(all, ReduceOp::max, {.name = what, .scale = {}});
  work->wait();
  const int64_t largest = all.to_vector<int64_t>().front();
  work->wait();
  return largest;
}

std::vector<std::string> World::texts(const std::string& own, const std::string& what) const {
  if (size() == 1) return {own};
  return group_->all_gather_text(own, what);
}

void World::wait_for_all(const std::string& what) const {
  if (size() > 1) group_->barrier(what);
}

std::function<bool(bool)> World::all_agree() const {
  if (size() == 1) return {};
  return [world = *this](bool own) { return world.max(own ? 0 : 1, "the same graph on all ranks") == 0; };
}

Device World::where() const { return group_->backend() == "nccl" ? device_ : Device{}; }

namespace {
/// The GPUs that this process sees; no query if none is wanted, so that a broken driver does not keep the CPU from
/// training.
int count_gpus(const std::string& device) {
  return device == "cpu" ? 0 : kernels::runtime(DeviceKind::cuda).device_count();
}
}  // namespace

World init(const InitOptions& options) {
  World world;
  if (options.alone) {
    world.device_ = weft::choose_device(options.device);
    world.group_ = make_process_group_alone();
    return world;
  }
  const EnvironmentVariables variables = environment_variables();
  const LaunchEnvironment environment = read_launch_environment(variables);
  world.launcher_ = environment.launcher;
  world.restarts_ = environment.restarts;
  if (environment.size == 1) {
    world.device_ = weft::choose_device(options.device);
    world.group_ = make_process_group_alone();
    return world;
  }

  const std::string device = enter_emulator(options.device);
  static std::atomic<bool> called{false};
  WEFT_CHECK(!called.exchange(true),
             "init: this process has joined its job already. Call it once, and pass the World on");
  GroupOptions group = options.group;
  group.timeout = seconds_of(variables, "WEFT_TIMEOUT", group.timeout);
  const Milliseconds timeout =
      seconds_of(variables, "WEFT_START_TIMEOUT", std::min(options.start_timeout, group.timeout));
  world.session_ = std::make_shared<Session>(environment, variables, timeout);
  try {
    RankPlace own;
    own.host = host_name();
    own.machine = host_identity();
    own.local_rank = environment.local_rank;
    const LocalRank local = exchange_places(*world.session_, "host", own, environment, timeout);
    if (own.local_rank < 0) own.local_rank = local.rank;
    try {
      own.device = choose_device(device, own.local_rank, count_gpus(device));
      own.gpu = kernels::runtime(own.device.kind).identity(own.device.index);
      own.backend = choose_backend(options.backend, own.device, environment, built_backends());
    } catch (const Error& error) {
      own.error = error.what();  // the others shall hear of it now, not when their patience ends
    }
    exchange_places(*world.session_, "place", own, environment, timeout);
    world.device_ = own.device;
    world.local_rank_ = own.local_rank;
    world.local_size_ = environment.local_size > 0 ? environment.local_size : local.size;
    group.stall_report = seconds_of(variables, "WEFT_STALL_REPORT", std::min(group.stall_report, group.timeout / 2));
    group.algorithms = algorithms_of(variables, group.algorithms);
    group.secure = secure_of(variables, group.secure);
    group.gpu = own.device.index;
    group.start_timeout = timeout;
    if (const auto check = variables.find("WEFT_CHECK"); check != variables.end() && !check->second.empty()) {
      WEFT_CHECK(check->second == "0" || check->second == "1", "WEFT_CHECK: expected 0 or 1, got '",
                 printable(check->second.substr(0, 100)), "'");
      group.check = check->second == "1";
    }
    world.step_times_ = steps_of(variables);
    group.times = world.step_times_ > 0;
    if (const auto folder = variables.find("WEFT_FLIGHT_RECORDS"); folder != variables.end())
      group.records = folder->second;
    world.group_ =
        make_process_group(own.backend, environment.rank, environment.size, world.store(), world.membership(), group);
    // A rank that finds a mistake in its flags and leaves would break off connections that others are still making:
    // they would report that, not the mistake.
    world.wait_for_all("start");
  } catch (const std::exception& error) {
    world.session_->give_up(error.what());  // mpirun ends this rank, before its message, as soon as another exits
    throw;
  }
  return world;
}

}  // namespace weft::dist
