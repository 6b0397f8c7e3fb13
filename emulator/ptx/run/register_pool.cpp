// SPDX-License-Identifier: Apache-2.0
// setmaxnreg (PTX ISA 9.0): the warps of a block give registers to a pool, or wait until it has enough for them.
#include "emulator/ptx/run/register_pool.h"

#include <algorithm>

#include "emulator/ptx/matrix/matrix_layout.h"

namespace emulator::ptx {

namespace {

constexpr uint32_t kWarps = 4;  // per warpgroup
constexpr int kUnit = 8;

struct Owner {
  int registers = 0;  ///< per thread
  size_t requests = 0;
  std::string waits;  ///< for reports
};
struct RegisterPool {
  int free = 0;  ///< registers of the block that no warp owns
  std::vector<Owner> warps;
  std::vector<std::vector<const Instruction*>> requests;  ///< per warpgroup, as the first warp made them
};

RegisterPool& pool_of(Block& block) {
  if (!block.register_pool) {
    auto pool = std::make_shared<RegisterPool>();
    pool->warps.resize(block.warps.size());
    for (Owner& owner : pool->warps)
      owner.registers = (block.grid->kernel->launch_registers + kUnit - 1) / kUnit * kUnit;
    pool->requests.resize((block.warps.size() + kWarps - 1) / kWarps);
    block.register_pool = std::move(pool);
  }
  return *static_cast<RegisterPool*>(block.register_pool.get());
}

std::string request_text(const Instruction* i) { return cat("setmaxnreg.", i->aux ? "inc " : "dec ", i->imm); }

/// imm: registers of a thread; aux: 1 for .inc.
const Instruction* setmaxnreg(Warp& w, const Instruction* i) {
  const Instruction* next = nullptr;
  if (!matrix::whole_warp(w, i, "setmaxnreg", next)) return next;
  const auto fail = [&](const std::string& what) { w.fail(i, 0, FaultCode::launch_failure, request_text(i) + what); };
  const uint32_t group = w.index / kWarps;
  if ((group + 1) * kWarps * kLanes > w.block->threads)
    fail(cat(": a warpgroup is 4 whole warps; warp ", w.index, " of a block of ", w.block->threads,
             " threads is in none"));
  RegisterPool& pool = pool_of(*w.block);
  Owner& own = pool.warps[w.index];
  std::vector<const Instruction*>& requests = pool.requests[group];
  if (own.requests == requests.size()) requests.push_back(i);
  if (const Instruction* const first = requests[own.requests]; first->imm != i->imm || first->aux != i->aux)
    fail(cat(": another warp of its warpgroup executes ", request_text(first), " at ", w.kernel().where(first)));
  const int at_launch = w.kernel().launch_registers, wanted = static_cast<int>(i->imm);
  if (at_launch != 0) {  // ptxas ignores setmaxnreg if this number is unknown
    const int before = own.requests == 0 ? at_launch / kUnit * kUnit : own.registers;
    if (i->aux ? wanted < before : wanted > own.registers) fail(cat(": the warp has ", before, " registers a thread"));
    const int more = (wanted - own.registers) * kLanes;
    for (size_t k = 0; k < pool.warps.size() && more > pool.free; ++k)
      if (w.block->warps[k].exited == ~0u) pool.free += std::exchange(pool.warps[k].registers, 0) * kLanes;
    if (more > pool.free) {
      own.waits = cat(more, " registers of the block, of which ", pool.free, " are free,");
      return w.poll(i, own.waits.c_str());
    }
    pool.free -= more;
    own.registers = wanted;
  }
  ++own.requests;
  return i + 1;
}

}  // namespace

void check_register_requests(const Block& block) {
  const auto* const pool = static_cast<const RegisterPool*>(block.register_pool.get());
  if (!pool) return;
  for (size_t group = 0; group < pool->requests.size(); ++group) {
    const auto begin = pool->warps.begin() + static_cast<std::ptrdiff_t>(group * kWarps),
               end = std::min(begin + kWarps, pool->warps.end());
    for (auto warp = begin; warp != end; ++warp)
      if (warp->requests < pool->requests[group].size()) {
        const Instruction* const i = pool->requests[group][warp->requests];
        const Warp& w = block.warps[static_cast<size_t>(warp - pool->warps.begin())];
        w.fail(i, 0, FaultCode::launch_failure,
               cat(request_text(i), ": warp ", w.index, " has not executed it; all 4 warps of a warpgroup must"));
      }
  }
}

void lower_setmaxnreg(Lowering& l) {
  constexpr int64_t kLeast = 24, kMost = 256;
  for (const std::string_view mod : l.mods())
    if (mod != "inc" && mod != "dec" && mod != "sync" && mod != "aligned" && mod != "u32") l.unknown(cat('.', mod));
  const Operand& count = l.operand(0);
  if (l.has("inc") == l.has("dec") || count.kind != Operand::Kind::integer) l.unknown();
  if (count.value < kLeast || count.value > kMost || count.value % kUnit)
    l.unknown("a number of registers is a multiple of 8 from 24 to 256");
  Instruction& i = l.emit(setmaxnreg);
  i.imm = static_cast<uint64_t>(count.value);
  i.aux = l.has("inc");
}

}  // namespace emulator::ptx
