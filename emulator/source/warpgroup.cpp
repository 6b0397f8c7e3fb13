// SPDX-License-Identifier: Apache-2.0
#include "emulator/source/warpgroup.h"

#include <algorithm>
#include <cstring>

#include "emulator/machine/fault.h"
#include "emulator/source/check.h"
#include "emulator/source/hopper.h"
#include "emulator/source/hopper_block.h"
#include "emulator/source/report.h"
#include "emulator/source/worker.h"

namespace emulator::source {

void RegisterFile::begin(int threads) {
  // The registers that a kernel with __launch_bounds__(threads, 1) starts with.
  const int each = std::min(255, kAll / threads) / 8 * 8;
  of_warp.fill(each);
  const int warps = (threads + kLanes - 1) / kLanes;
  free = kAll - warps * kLanes * each;
  waiting.clear();
}

void named_barrier(int id, int threads, bool waits, SourceLine where) {
  Worker& worker = *Worker::running();
  const char* const what = waits ? "named_barrier_sync" : "named_barrier_arrive";
  if (id < 1 || id > 15)
    worker.report().fail([&] { return cat(what, " at ", where, ": barrier ", id, ", expected 1 to 15"); });
  if (threads < 32 || threads % 32 || threads > worker.threads_count())
    worker.report().fail([&] {
      return cat(what, " at ", where, ": ", threads, " threads, expected a multiple of 32 and at most the block's ",
                 worker.threads_count());
    });
  NamedBarrier& barrier = worker.hopper().named[static_cast<size_t>(id)];
  if (barrier.threads == 0) {
    barrier.threads = threads;
    barrier.first = where;
  } else if (barrier.threads != threads) {
    worker.report().fail([&] {
      return cat(what, " at ", where, ": barrier ", id, " of ", threads, " threads, but of ", barrier.threads, " at ",
                 barrier.first);
    });
  }
  check_named_arrive(id);
  ++barrier.arrived;
  if (barrier.arrived == barrier.threads) {
    check_named_complete(id);
    barrier.threads = barrier.arrived = 0;
    for (const int thread : barrier.waiting) worker.wake(thread);
    barrier.waiting.clear();
  } else if (waits) {
    barrier.waiting.push_back(worker.current());
    worker.block(what, &barrier, where);
  }
  if (waits) check_named_acquire(id);
}

namespace {

struct RegistersFrame {
  int registers;
  bool release;
  SourceLine where;
};

/// The whole warp is here: the last lane acts for all of it. Waiting is below.
void deal_registers(void** frames, uint32_t) {
  Worker& worker = *Worker::running();
  const auto& frame = *static_cast<RegistersFrame*>(frames[worker.lane()]);
  RegisterFile& file = worker.hopper().registers;
  const int warp = worker.current() / kLanes;
  int& has = file.of_warp[static_cast<size_t>(warp)];
  if (frame.release ? frame.registers > has : frame.registers < has)
    worker.report().fail([&] {
      return cat(frame.release ? "release_registers" : "acquire_registers", " at ", frame.where, ": to ",
                 frame.registers, " registers per thread from ", has);
    });
  if (!frame.release) return;
  file.free += kLanes * (has - frame.registers);
  has = frame.registers;
  size_t kept = 0;
  for (const RegisterFile::Waiter& waiter : file.waiting) {
    const int more = kLanes * (waiter.wanted - file.of_warp[static_cast<size_t>(waiter.warp)]);
    if (more > file.free) {
      file.waiting[kept++] = waiter;
      continue;
    }
    file.free -= more;
    file.of_warp[static_cast<size_t>(waiter.warp)] = waiter.wanted;
    for (int lane = 0; lane < kLanes; ++lane) worker.wake(waiter.warp * kLanes + lane);
  }
  file.waiting.resize(kept);
}

const CollectiveOp kSetRegisters{"setmaxnreg", deal_registers};

struct ElectFrame {
  bool elected;
};
const CollectiveOp kElect{"elect_one", [](void** frames, uint32_t) {
                            const int chosen = Worker::running()->elected_lane();
                            for (int lane = 0; lane < kLanes; ++lane)
                              static_cast<ElectFrame*>(frames[lane])->elected = lane == chosen;
                          }};

struct StmatrixFrame {
  void* row;
  const uint32_t* registers;
};

template <bool kTransposed>
void store_matrices(void** frames, uint32_t) {
  for (int m = 0; m < 4; ++m) {
    uint16_t element[8][8];
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t word = static_cast<StmatrixFrame*>(frames[lane])->registers[m];
      const int row = lane / 4, column = lane % 4 * 2;
      for (int i = 0; i < 2; ++i)
        (kTransposed ? element[column + i][row] : element[row][column + i]) = static_cast<uint16_t>(word >> (16 * i));
    }
    for (int row = 0; row < 8; ++row)
      std::memcpy(static_cast<StmatrixFrame*>(frames[8 * m + row])->row, element[row], 16);
  }
}
const CollectiveOp kStmatrix{"stmatrix.x4", store_matrices<false>};
const CollectiveOp kStmatrixTrans{"stmatrix.x4.trans", store_matrices<true>};

}  // namespace

void set_registers(int registers, bool release, SourceLine where) {
  Worker& worker = *Worker::running();
  worker.hopper();
  RegistersFrame frame{registers, release, where};
  collective(kSetRegisters, 0xffffffffu, &frame, where);
  if (release) return;
  RegisterFile& file = worker.hopper().registers;
  const int warp = worker.current() / kLanes;
  int& has = file.of_warp[static_cast<size_t>(warp)];
  if (has == registers) return;  // a lane before this one has acted for the warp
  const int more = kLanes * (registers - has);
  if (more <= file.free) {
    file.free -= more;
    has = registers;
    return;
  }
  const bool noted = std::any_of(file.waiting.begin(), file.waiting.end(),
                                 [&](const RegisterFile::Waiter& waiter) { return waiter.warp == warp; });
  if (!noted) file.waiting.push_back({warp, registers});
  worker.block("acquire_registers", &file, where);
}

bool elect_one(SourceLine where) {
  ElectFrame frame{};
  collective(kElect, 0xffffffffu, &frame, where);
  return frame.elected;
}

void stmatrix(void* row, const uint32_t* registers, bool transposed, SourceLine where) {
  Worker& worker = *Worker::running();
  worker.check_shared("stmatrix", row, 16, where);
  check_write(row, 16, where);
  StmatrixFrame frame{row, registers};
  collective(transposed ? kStmatrixTrans : kStmatrix, 0xffffffffu, &frame, where);
}

}  // namespace emulator::source
