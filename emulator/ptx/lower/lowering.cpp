// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/lower/lowering.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "emulator/machine/options.h"
#include "emulator/ptx/lower/calls.h"
#include "emulator/ptx/lower/frames.h"
#include "emulator/ptx/lower/inline.h"
#include "emulator/ptx/lower/lowering_state.h"
#include "emulator/ptx/lower/value_flow.h"
#include "emulator/ptx/matrix/wgmma_reads.h"
#include "emulator/ptx/run/breakpoint.h"
#include "emulator/ptx/run/warp.h"
#include "emulator/ptx/time/profile.h"
#include "emulator/ptx/time/time_count.h"
#include "emulator/ptx/time/time_notes.h"

namespace emulator::ptx {

namespace {

/// Below 2^31, as sizes() of the parser sees to.
uint32_t product(const int (&sizes)[3]) { return static_cast<uint32_t>(sizes[0] * sizes[1] * sizes[2]); }

uint32_t most_threads(const Function& f) { return std::max(product(f.max_threads), product(f.required_threads)); }

/// Registers that a thread may have by the launch bounds.
int most_registers(const Function& f) {
  int most = 255;
  if (const uint32_t threads = most_threads(f); threads > 0) {
    const uint64_t all = uint64_t{threads} * static_cast<uint32_t>(std::max(1, f.min_blocks));
    most = std::min(most, static_cast<int>(65536 / all / 8 * 8));
  }
  return f.max_registers > 0 ? std::min(most, f.max_registers) : most;
}

/// An estimate of ptxas's registers: a little more than are live at once, in steps of 8, within the launch bounds.
int estimate_registers(const Function& f, int most_alive) {
  constexpr int kOwn = 10;  // for the system and addresses
  const int most = most_registers(f);
  const int wanted = (most_alive + kOwn + 7) / 8 * 8;
  return std::clamp(std::min(wanted, most), 16, 255);
}

void describe(const Function& f, Kernel& kernel) {
  kernel.max_threads = 1024;
  if (const uint32_t threads = product(f.max_threads); threads > 0) kernel.max_threads = static_cast<int>(threads);
  if (const uint32_t threads = product(f.required_threads); threads > 0) kernel.max_threads = static_cast<int>(threads);
  std::copy(std::begin(f.required_threads), std::end(f.required_threads), kernel.required_threads);
  std::copy(std::begin(f.cluster), std::end(f.cluster), kernel.cluster);
  kernel.min_blocks = f.min_blocks;
  if (most_threads(f) > 0 || f.max_registers > 0) kernel.launch_registers = most_registers(f);
}

/// Source and destination of a mov share a register: it has nothing to do.
bool is_nothing(const Function& f, const Statement& s, const RegisterPlaces& places) {
  return is_copy(f, s) &&
         places.place[static_cast<size_t>(s.operands[0].reg)] == places.place[static_cast<size_t>(s.operands[1].reg)];
}

/// Statements by number become distances; where lanes may meet is marked.
void link(const Function& f, const std::vector<size_t>& start, Kernel& kernel) {
  std::vector<Instruction>& code = kernel.code;
  for (size_t n = 0; n < code.size(); ++n) {
    if (!(code[n].flags & kJump)) continue;
    const size_t target = start[code[n].imm];
    code[n].imm = static_cast<uint64_t>((static_cast<int64_t>(target) - static_cast<int64_t>(n)) *
                                        static_cast<int64_t>(sizeof(Instruction)));
  }
  code.front().flags |= kLeader;
  for (size_t i = 0; i < f.code.size(); ++i) {
    for_each_target(f, f.code[i], [&](int target) { code[start[static_cast<size_t>(target)]].flags |= kLeader; });
    if (ends_block(f.code[i])) code[start[i + 1]].flags |= kLeader;
  }
}

void own_constants(const std::vector<char>& constants, Kernel& kernel) {
  const size_t bytes = std::max<size_t>(64, constants.size());
  kernel.constants_owner = {static_cast<char*>(::operator new (bytes, std::align_val_t{64})),
                            [](char* p) { ::operator delete (p, std::align_val_t{64}); }};
  kernel.constants = kernel.constants_owner.get();
  std::copy(constants.begin(), constants.end(), kernel.constants);
}

}  // namespace

const Statement& Lowering::statement() const { return state_->body.code[state_->current]; }
const Operand& Lowering::operand(size_t i) const {
  static const Operand none;
  return i < operands() ? statement().operands[i] : none;
}
size_t Lowering::operands() const { return statement().operands.size(); }
std::string_view Lowering::op() const { return statement().op; }
bool Lowering::has(std::string_view mod) const { return statement().has(mod); }
Type Lowering::type(int i) const { return statement().type(i); }
const std::vector<std::string_view>& Lowering::mods() const { return statement().mods; }
Kernel& Lowering::kernel() { return *state_->kernel; }
const Function& Lowering::function() const { return state_->body; }
const Module& Lowering::module() const { return state_->module; }
int Lowering::capability() const { return state_->module.capability(); }

Instruction& Lowering::emit(Handler run, Ref d, Ref a, Ref b, Ref c) {
  const Statement& s = statement();
  Instruction& i = state_->kernel->code.emplace_back();
  i.run = run;
  i.d = d;
  i.a = a;
  i.b = b;
  i.c = c;
  if (s.guard >= 0) i.guard = (state_->places.place[static_cast<size_t>(s.guard)] + 1) * 2 + s.guard_negated;
  i.line = s.line;
  return i;
}

void Lowering::unknown(std::string_view why) const {
  const Statement& s = statement();
  std::string text(s.op);
  for (const std::string_view mod : s.mods) text += cat(".", mod);
  if (const std::string_view name = callee(); !name.empty()) text += cat(" ", name);
  text = cat("unsupported PTX: \"", text, "\" at ", describe_line(module().text().files, state_->body.lines, s.line));
  if (!why.empty()) text += cat(" (", why, ")");
  throw Fault(FaultCode::unsupported, text);
}

std::string_view Lowering::callee() const {
  if (op() != "call") return {};
  const Operand* const callee = read_call(statement()).callee;
  return callee != nullptr && callee->kind == Operand::Kind::symbol ? callee->name : std::string_view();
}

size_t Lowering::call_arguments() const {
  const Operand* const arguments = read_call(statement()).arguments;
  return arguments == nullptr ? 0 : arguments->parts.size();
}

Ref Lowering::call_argument(size_t i) {
  if (call_argument_bytes(i) == 0) unknown(cat("argument ", i, " is no register of 32 or 64 bits"));
  return source(read_call(statement()).arguments->parts[i], Type::none);
}

int Lowering::call_argument_bytes(size_t i) const {
  const int bytes = i < call_arguments() ? register_bytes(read_call(statement()).arguments->parts[i]) : 0;
  return bytes == 4 || bytes == 8 ? bytes : 0;
}

Ref Lowering::call_result() {
  const Operand* const results = read_call(statement()).results;
  if (results == nullptr || results->parts.empty()) return kNoRef;
  if (results->parts.size() > 1 || results->parts[0].kind == Operand::Kind::symbol)
    unknown("the result is no register of 32 or 64 bits");
  return destination(results->parts[0]);
}

int Lowering::call_result_bytes() const {
  const Operand* const results = read_call(statement()).results;
  return results == nullptr || results->parts.empty() ? 0 : register_bytes(results->parts[0]);
}

std::unique_ptr<Kernel> lower(Module& module, Function& function) {
  Lowering::State state{.module = module,
                        .body = inline_calls(module, function),
                        .kernel = std::make_unique<Kernel>(),
                        .places = {},
                        .symbols = nullptr,
                        .constants = {},
                        .constant_refs = {},
                        .scratch = {}};
  Lowering l;
  l.state_ = &state;
  Function& body = state.body;
  Kernel& kernel = *state.kernel;
  kernel.name = body.name;
  kernel.module = &module;
  place_call_parameters(body);
  place_frames(body);
  describe(body, kernel);

  std::vector<const Opcode*> opcodes(body.code.size());
  for (state.current = 0; state.current < body.code.size(); ++state.current) {
    opcodes[state.current] = find_opcode(l.statement());
    if (opcodes[state.current] == nullptr) l.unknown("no such instruction");
  }
  const Accesses accesses(body, opcodes);
  const Liveness liveness(body, accesses);
  state.liveness = &liveness;
  state.places = place_registers(body, accesses, liveness, opcodes);
  kernel.register_bytes = state.places.bytes;
  kernel.predicates = state.places.predicates;
  kernel.registers_per_thread = estimate_registers(body, state.places.most_alive);
  state.symbols = std::make_unique<Symbols>(module, body, kernel);

  kernel.code.reserve(body.code.size() + 1);
  std::vector<size_t> start(body.code.size() + 1);
  WgmmaReads sums(body, accesses, state.places);
  const auto flow = options().check_uninitialised ? std::make_shared<ValueFlow>() : nullptr;
  const auto times = timed() ? std::make_shared<TimeTable>() : nullptr;
  for (size_t i = 0; i < body.code.size(); ++i) {
    state.current = i;
    start[i] = kernel.code.size();
    if (is_nothing(body, body.code[i], state.places)) continue;
    sums.guard(l, i);
    const size_t first = kernel.code.size();
    opcodes[i]->lower(l);
    if (flow) note_values(l, state.places, *opcodes[i], first, *flow);
    if (times) note_statement(l, accesses, state.places, i, first, *times);
  }
  start.back() = kernel.code.size();
  Instruction& last = kernel.code.emplace_back();
  last.run = run_off_code;
  if (!body.code.empty()) last.line = body.code.back().line;
  link(body, start, kernel);
  own_constants(state.constants, kernel);
  if (times) {
    times->notes.resize(kernel.code.size());
    note_joins(body, accesses, start, kernel, *times);
  }
  kernel.time = times;
  if (flow) flow->step_at.resize(kernel.code.size());
  kernel.flow = flow;
  if (breaks_in(kernel)) keep_debug_table(kernel, body, liveness, state.places, start);
  if (profiles()) keep_profile_table(kernel, body, start);
  kernel.lines = std::move(body.lines);
  return std::move(state.kernel);
}

}  // namespace emulator::ptx
