// SPDX-License-Identifier: Apache-2.0
#include "emulator/nccl/communicator.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "emulator/machine/fault.h"
#include "emulator/machine/timeline.h"
#include "emulator/nccl/watch.h"

namespace emulator::nccl {
namespace {

constexpr std::chrono::milliseconds kSleep{50};

/// Names the physical GPU: which of the visible ones, on which host (NCCL_HOSTID names another host, as in NCCL).
std::string gpu_name(int device) {
  const char* const host = std::getenv("NCCL_HOSTID");
  std::string name = std::to_string(device);
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible && *visible) {
    std::string list = visible;
    for (int i = 0; i < device && !list.empty(); ++i) list.erase(0, std::min(list.find(','), list.size() - 1) + 1);
    if (!list.empty()) name = list.substr(0, list.find(','));
  }
  return cat(host ? cat("host ", host, ", ") : "", "GPU ", name);
}

}  // namespace

void report(const std::string& text) {
  const std::string line = "weft-emulate: NCCL: " + text + '\n';  // one write: processes share stderr
  std::fputs(line.c_str(), stderr);
  remember(text);
}

namespace {
std::mutex last_mutex;
std::string& last_text() {
  static auto& text = *new std::string;  // threads may outlive main
  return text;
}
}  // namespace

void remember(const std::string& text) {
  const std::lock_guard lock(last_mutex);
  last_text() = text;
}

std::string last_error() {
  const std::lock_guard lock(last_mutex);
  return last_text();
}

double timeout_seconds() {
  static const double seconds = [] {
    const char* const text = std::getenv("WEFT_EMULATE_NCCL_TIMEOUT");
    if (!text || !*text) return 0.0;
    char* end = nullptr;
    const double value = std::strtod(text, &end);
    if (*end == 0 && value >= 0) return value;
    std::fprintf(stderr, "weft-emulate: WEFT_EMULATE_NCCL_TIMEOUT: expected seconds, got %s\n", text);
    std::exit(2);
  }();
  return seconds;
}

Communicator::Communicator(int device, const ncclConfig_t& config) : device_(device), config_(config) {
  if (config.commName) name_ = config.commName;
  config_.commName = nullptr;  // the caller's string may go
  config_.netName = nullptr;
}

void Communicator::place(int rank, int size) {
  rank_ = rank;
  size_ = size;
  transfers_.assign(static_cast<size_t>(size) * 4, 0);
}

std::shared_ptr<Segment> Communicator::segment() const {
  const std::lock_guard lock(mutex_);
  return segment_;
}

ncclResult_t Communicator::join(const ncclUniqueId& id, const Communicator* parent) {
  const auto s = std::make_shared<Segment>();
  if (const auto failure = Segment::open(id, size_, rank_, *s)) {
    fail(failure->code, failure->text);
    return failure->code;
  }
  {
    const std::lock_guard lock(mutex_);
    segment_ = s;
  }
  RankSlot& mine = s->slot(rank_);
  Presence absent = Presence::absent;
  try {
    if (!mine.presence.compare_exchange_strong(absent, Presence::joining)) {
      fail(ncclInvalidUsage, cat("ncclCommInitRank: rank ", rank_, " of ", size_, " has joined already (processes ",
                                 mine.pid, " and ", getpid(), ")"));
      throw Stopped{};
    }
    mine.pid = getpid();
    mine.started = start_of_process(mine.pid);
    mine.gpu[gpu_name(device_).copy(mine.gpu, sizeof mine.gpu - 1)] = 0;
    mine.presence.store(Presence::here);
    ring_all(*s);
    int missing = rank_;
    const auto done = [&] {
      for (int r = 0; r < size_; ++r)
        if (const Presence p = s->slot(r).presence.load(); p == Presence::absent || p == Presence::joining) {
          missing = r;
          return false;
        }
      return true;
    };
    const auto what = [this] { return cat("the meeting of ", size_, " ranks (ncclCommInitRank)"); };
    Wait w{done, [&missing] { return missing; }, what};
    w.parent = parent;
    wait(*s, w);
    Segment::forget(id);
    check_duplicates(*s);
    log_connections(*s);
    if (timeline::on()) find_places(*s);
  } catch (const Stopped&) {
    const ncclResult_t result = state();
    remember(error_text());
    return result == ncclSuccess || result == ncclInProgress ? ncclInternalError : result;
  }
  return ncclSuccess;
}

Communicator::Node Communicator::node_of(const Segment& s, int rank) {
  const std::string gpu = s.slot(rank).gpu;
  const size_t number = gpu.rfind("GPU ");
  return {gpu.substr(0, number), std::atoi(gpu.c_str() + number + 4) / (timeline::cluster() ? timeline::cluster()->per_node : 1)};
}

void Communicator::find_places(const Segment& s) {
  std::map<Node, int> ranks;
  for (int r = 0; r < size_; ++r) places_.local = std::max(places_.local, ++ranks[node_of(s, r)]);
  places_.ranks = size_;
  places_.nodes = static_cast<int>(ranks.size());
  timeline::name_rank(device_, rank_, size_);
}

/// Logs connections as NCCL does with NCCL_DEBUG=INFO, in its words, for programs that read its log.
void Communicator::log_connections(Segment& s) const {
  struct Log {
    const char* const level = std::getenv("NCCL_DEBUG");
    const char* const file = std::getenv("NCCL_DEBUG_FILE");
    const int fd = !level || std::strcmp(level, "INFO") != 0 ? -1
                   : file ? ::open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
                          : STDOUT_FILENO;
  };
  static const Log log;  // as NCCL, which asks once
  if (log.fd < 0) return;
  const auto host_of = [&](int r) {
    const std::string gpu = s.slot(r).gpu;
    return gpu.substr(0, gpu.rfind("GPU "));
  };
  std::set<std::string> hosts;
  int local = 0;
  for (int r = 0; r < size_; ++r) hosts.insert(host_of(r)), local += host_of(r) == host_of(rank_);
  int major = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_);
  const std::string head = cat("weft-emulate:", getpid(), " [", device_, "] NCCL INFO ");
  std::string text =
      cat(head, "NET/Socket : Using [0]emulated:127.0.0.1<0>\n", head, "Using network Socket\n", head,
          "NVLS multicast support is ", major >= 9 ? "" : "not ", "available on dev ", device_, "\n", head,
          "comm 0 rank ", rank_, " nRanks ", size_, " nNodes ", hosts.size(), " localRanks ", local, "\n");
  if (local > 1) text += cat(head, "Pattern 4, crossNic 0, nChannels 1, bw 20.0/20.0, type NVL/PIX, sameChannels 1\n");
  if (const int next = (rank_ + 1) % size_; next != rank_)
    text += cat(head, "Channel 00/0 : ", rank_, "[", device_, "] -> ", next, "[0] ",
                host_of(next) == host_of(rank_) ? "via P2P/IPC" : "[send] via NET/Socket/0", "\n");
  [[maybe_unused]] const ssize_t written = ::write(log.fd, text.data(), text.size());
}

void Communicator::check_duplicates(Segment& s) {
  for (int a = 0; a < size_; ++a)
    for (int b = a + 1; b < size_; ++b)
      if (std::strcmp(s.slot(a).gpu, s.slot(b).gpu) == 0) {
        fail(ncclInvalidUsage,
             cat("rank ", a, " and rank ", b, " use the same GPU (", s.slot(a).gpu,
                 "), which NCCL refuses. Give each a GPU of its own: WEFT_EMULATE_GPUS, cudaSetDevice. "
                 "NCCL_HOSTID tells hosts apart"));
        throw Stopped{};
      }
}

ncclResult_t Communicator::state() {
  const auto s = segment();
  if (s && s->header().error.is_here()) return static_cast<ncclResult_t>(s->header().error.code);
  {
    const std::lock_guard lock(mutex_);
    if (result_ != ncclSuccess) return result_;
  }
  if (working_ > 0) return ncclInProgress;
  if (!finalizing_ || pending_ == 0) return ncclSuccess;
  // A query also lets lazy streams go on. A device that has failed runs nothing more.
  for (const auto& [stream, end] : ends_) {
    const cudaError_t code = cudaEventQuery(end);
    if (code == cudaSuccess || code == cudaErrorNotReady) continue;
    fail(ncclUnhandledCudaError, cat("rank ", rank_, ": cudaEventQuery: ", cudaGetErrorString(code)));
    return ncclUnhandledCudaError;
  }
  return pending_ == 0 ? ncclSuccess : ncclInProgress;
}

std::string Communicator::error_text() const {
  const auto s = segment();
  if (s && s->header().error.is_here()) return s->header().error.text;
  const std::lock_guard lock(mutex_);
  return text_;
}

void Communicator::set_result(ncclResult_t code, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (result_ != ncclSuccess) return;
  result_ = code;
  text_ = text;
}

void Communicator::fail(ncclResult_t code, const std::string& text) {
  const std::string named = name_.empty() ? text : cat("communicator ", name_, ": ", text);
  const auto s = segment();
  if (s && !s->header().error.post(code, rank_, named)) return;
  set_result(code, named);
  report(named);
  if (s) ring_all(*s);
}

void Communicator::require_ready() {
  switch (const ncclResult_t now = state()) {
    case ncclSuccess:
      break;
    case ncclInProgress:
      throw Failure{ncclInvalidArgument, "the communicator is used before its last call has ended (ncclInProgress)"};
    default:
      throw Failure{now, error_text(), true};
  }
  if (finalizing_) throw Failure{ncclInvalidUsage, "the communicator is used after ncclCommFinalize"};
  if (stopped_) throw Failure{ncclInvalidUsage, "the communicator is used after ncclCommShrink with NCCL_SHRINK_ABORT"};
}

void Communicator::start(std::function<ncclResult_t()> work) {
  std::vector<std::thread> ended;
  if (working_ == 0) {
    const std::lock_guard lock(mutex_);
    ended.swap(threads_);
  }
  for (std::thread& thread : ended) thread.join();
  begin_work();
  const std::lock_guard lock(mutex_);
  threads_.emplace_back([this, work = std::move(work)] { end_work(work()); });
}

void Communicator::end_work(ncclResult_t result) {
  if (result != ncclSuccess) set_result(result, "the communicator could not be made");
  --working_;
}

void Communicator::ring_all(Segment& s) const {
  for (int r = 0; r < size_; ++r) s.slot(r).bell.ring();
}

bool Communicator::stopped(const Segment& s, const Wait& wait) const {
  return aborted_ || (wait.parent && wait.parent->aborted()) ||
         (!wait.despite_errors && (stopped_ || s.header().error.is_here()));
}

void Communicator::wait(Segment& s, const Wait& wait) {
  Bell& bell = s.slot(rank_).bell;
  Watch watch(*this, s, wait);
  for (;;) {
    const uint32_t rung = bell.rung();
    if (wait.done()) return;
    if (stopped(s, wait)) throw Stopped{};
    bell.wait(rung, kSleep);
    if (wait.done()) return;
    watch.look();
  }
}

void Communicator::leave(Presence presence) {
  if (const auto s = segment()) {
    s->slot(rank_).presence.store(presence);
    ring_all(*s);
  }
}

void Communicator::finalize() {
  require_ready();
  finalizing_ = true;
  if (blocking())
    for (const auto& [stream, end] : ends_) cudaEventSynchronize(end);
  if (pending_ == 0) leave(Presence::left);
}

void Communicator::forget_ends() {
  for (const auto& [stream, end] : ends_) cudaEventDestroy(end);
  ends_.clear();
  last_ = nullptr;
}

void Communicator::destroy() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  // Operations under way end first, or by the communicator's error.
  for (const auto& [stream, end] : ends_) cudaEventSynchronize(end);
  forget_ends();
  finalizing_ = true;
  closed_ = true;
  leave(Presence::left);
  const std::lock_guard lock(mutex_);
  segment_ = nullptr;
}

void Communicator::abort() {
  aborted_ = true;
  closed_ = true;
  const auto s = segment();
  if (s && s->slot(rank_).presence.load() != Presence::left) {
    if (s->header().error.post(ncclRemoteError, rank_, cat("rank ", rank_, " has aborted the communicator")))
      set_result(ncclInvalidUsage, "the communicator was aborted");
    leave(Presence::aborted);
  }
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  // Each wait of a running operation sees the abort; after this the buffers are the caller's.
  while (running_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  forget_ends();
  const std::lock_guard lock(mutex_);
  segment_ = nullptr;
}

void Communicator::stop_operations() {
  stopped_ = true;
  if (const auto s = segment()) s->slot(rank_).bell.ring();
  while (running_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

ncclRedOp_t Communicator::add_operator(const ReductionOperator& op) {
  const std::lock_guard lock(mutex_);
  const auto free = std::find_if(operators_.begin(), operators_.end(), [](const auto& o) { return !o.first; });
  const auto place = free == operators_.end() ? operators_.insert(free, {true, op}) : free;
  *place = {true, op};
  return static_cast<ncclRedOp_t>(ncclNumOps + (place - operators_.begin()));
}

ReductionOperator Communicator::find_operator(ncclRedOp_t op) const {
  const std::lock_guard lock(mutex_);
  const auto i = static_cast<size_t>(op) - ncclNumOps;
  if (op < ncclNumOps || i >= operators_.size() || !operators_[i].first)
    throw Failure{ncclInvalidArgument,
                  cat("reduction operator ", static_cast<int>(op), " is none of this communicator")};
  return operators_[i].second;
}

void Communicator::remove_operator(ncclRedOp_t op) {
  find_operator(op);
  const std::lock_guard lock(mutex_);
  operators_[static_cast<size_t>(op) - ncclNumOps].first = false;
}

void* Communicator::add_registration() {
  const std::lock_guard lock(mutex_);
  void* const handle = new char;  // nothing but an address of its own
  registrations_.insert(handle);
  return handle;
}

void Communicator::remove_registration(void* handle) {
  const std::lock_guard lock(mutex_);
  if (registrations_.erase(handle) == 0) throw Failure{ncclInvalidArgument, "no such registration of the communicator"};
  delete static_cast<char*>(handle);
}

}  // namespace emulator::nccl
