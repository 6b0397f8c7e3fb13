// SPDX-License-Identifier: Apache-2.0
#include "emulator/nccl/group.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "emulator/machine/call_site.h"
#include "emulator/machine/fault.h"
#include "emulator/machine/options.h"
#include "emulator/machine/per_thread.h"
#include "emulator/machine/timeline.h"

namespace emulator::nccl {
namespace {

/// The calls of one communicator in a group.
struct Part {
  CommunicatorPtr communicator;
  std::shared_ptr<Batch> batch = std::make_shared<Batch>();
  std::vector<cudaStream_t> streams;
  std::string first;
};

struct Job {
  CommunicatorPtr owner;
  std::function<ncclResult_t()> work;
};

struct Group {
  int depth = 0;
  ncclResult_t spoilt = ncclSuccess;
  std::vector<Part> parts;
  std::vector<Job> jobs;
};

Group& group() {
  return per_thread<Group>();
}

Part& part_of(const CommunicatorPtr& c, cudaStream_t stream, bool captured, const std::string& text) {
  std::vector<Part>& parts = group().parts;
  auto part = std::find_if(parts.begin(), parts.end(), [&c](const Part& p) { return p.communicator == c; });
  if (part == parts.end()) {
    part = parts.insert(part, Part{});
    part->communicator = c;
    part->batch->captured = captured;
    part->first = text;
  }
  if (part->batch->captured != captured) {
    const std::string problem =
        cat("a group has captured and other calls on rank ", c->rank(), ": ", part->first, ", ", text);
    c->fail(ncclInvalidUsage, problem);
    throw Failure{ncclInvalidUsage, problem, true};
  }
  if (std::find(part->streams.begin(), part->streams.end(), stream) == part->streams.end())
    part->streams.push_back(stream);
  return *part;
}

/// A rank's sends to itself and its receives from itself match in order.
void match_own(Communicator& c, const std::vector<Transfer>& transfers) {
  std::vector<const Transfer*> own[2];
  for (const Transfer& t : transfers)
    if (t.peer == c.rank()) own[t.sends].push_back(&t);
  const auto text = [](const std::vector<const Transfer*>& list, size_t i) {
    return i < list.size() ? list[i]->text() : std::string("nothing");
  };
  for (size_t i = 0; i < std::max(own[0].size(), own[1].size()); ++i) {
    if (i < own[0].size() && i < own[1].size() && own[0][i]->type == own[1][i]->type &&
        own[0][i]->count == own[1][i]->count)
      continue;
    const std::string problem =
        cat("rank ", c.rank(), " in a group with itself: ", text(own[1], i), " meets ", text(own[0], i));
    c.fail(ncclInvalidUsage, problem);
    throw Failure{ncclInvalidUsage, problem, true};
  }
}

/// The transfers of a group run at once: none may write what another reads or writes.
void require_apart(Communicator& c, const std::vector<Transfer>& transfers) {
  for (const Transfer& in : transfers)
    for (const Transfer& other : transfers) {
      if (in.sends || &in == &other || in.bytes() == 0 || other.bytes() == 0) continue;
      if (in.peer == c.rank() && other.peer == in.peer && in.buffer == other.buffer) continue;
      const std::less<const std::byte*> before;
      if (!before(in.buffer, other.buffer + other.bytes()) || !before(other.buffer, in.buffer + in.bytes())) continue;
      const std::string problem =
          cat("rank ", c.rank(), ": the buffers of ", in.text(), " and ", other.text(), " in one group overlap");
      c.fail(ncclInvalidUsage, problem);
      throw Failure{ncclInvalidUsage, problem, true};
    }
}

/// The first error of blocking ones, or ncclInProgress.
ncclResult_t run_jobs(std::vector<Job> jobs) {
  ncclResult_t result = ncclSuccess;
  std::vector<ncclResult_t> results(jobs.size(), ncclSuccess);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].owner->blocking()) {
      jobs[i].owner->start(std::move(jobs[i].work));
      result = ncclInProgress;
    } else if (jobs.size() == 1) {
      results[i] = jobs[i].work();
    } else {
      threads.emplace_back([&results, &jobs, i] { results[i] = jobs[i].work(); });
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const ncclResult_t r : results)
    if (r != ncclSuccess) return r;
  return result;
}

/// As NCCL does it: the calls of a communicator that does not block reach their streams from another thread, some time
/// after they have returned. The caller must not go on with a stream, or end its capture, before they are there.
ncclResult_t enqueue(const Part& part) {
  const auto put = [c = part.communicator, batch = part.batch, streams = part.streams] {
    c->enqueue(batch, streams.front(), {streams.begin() + 1, streams.end()});
  };
  if (part.communicator->blocking()) return put(), ncclSuccess;
  static constexpr std::chrono::microseconds kLate{200};
  part.communicator->start([put, site = options().check_streams ? CallSite::here() : CallSite(), host = timeline::host()] {
    const CallSite::Behalf caller(site);
    timeline::host() = host;
    std::this_thread::sleep_for(kLate);
    try {
      put();
    } catch (const Failure& failure) {
      return failure.code;
    }
    return ncclSuccess;
  });
  return ncclInProgress;
}

/// Runs the group's calls, unless it is still open.
ncclResult_t run_unless_open() {
  Group& g = group();
  if (g.depth > 0) return ncclSuccess;
  const Group done = std::exchange(g, Group{});
  if (done.spoilt != ncclSuccess) return done.spoilt;
  ncclResult_t result = run_jobs(done.jobs);
  if (result != ncclSuccess && result != ncclInProgress) return result;
  for (const Part& part : done.parts) {
    match_own(*part.communicator, part.batch->transfers);
    require_apart(*part.communicator, part.batch->transfers);
  }
  for (const Part& part : done.parts)
    if (enqueue(part) == ncclInProgress) result = ncclInProgress;
  return result;
}

}  // namespace

bool in_group() { return group().depth > 0; }

void start_group() { ++group().depth; }

ncclResult_t end_group() {
  Group& g = group();
  if (g.depth == 0) throw Failure{ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart"};
  --g.depth;
  return run_unless_open();
}

void spoil_group(ncclResult_t code) {
  Group& g = group();
  if (g.depth > 0 && g.spoilt == ncclSuccess) g.spoilt = code;
}

ncclResult_t add_to_group(const CommunicatorPtr& c, const Collective& call, cudaStream_t stream) {
  part_of(c, stream, call.what.captured, call.what.text()).batch->collectives.push_back(call);
  return run_unless_open();
}

ncclResult_t add_to_group(const CommunicatorPtr& c, const Transfer& transfer, cudaStream_t stream) {
  part_of(c, stream, transfer.captured, transfer.text()).batch->transfers.push_back(transfer);
  return run_unless_open();
}

ncclResult_t add_to_group(const CommunicatorPtr& owner, std::function<ncclResult_t()> work) {
  group().jobs.push_back({owner, std::move(work)});
  return run_unless_open();
}

}  // namespace emulator::nccl
