// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "emulator/machine/fault.h"
#include "emulator/machine/memory.h"
#include "emulator/ptx/lower/inline.h"
#include "emulator/ptx/lower/lowering.h"
#include "emulator/ptx/parse/lexer.h"
#include "emulator/ptx/run/warp.h"
#include "emulator/ptx/time/count.h"

namespace emulator::ptx {

namespace {

bool has_memory(const Variable& v) {
  return (v.space == Space::global || v.space == Space::constant) && !v.is_external && v.bytes > 0;
}

/// Calls add(name) for every name in a body but those of instructions and callees.
template <class F>
void for_each_operand_name(const Function& f, F add) {
  Lexer lexer(f.body, f.body_line);
  std::string_view op;
  bool begins = true;
  for (char c = lexer.peek(); c != '\0'; c = lexer.peek()) {
    if (Lexer::is_word(c)) {
      const std::string_view word = lexer.word();
      if (begins)
        op = word;
      else if (op != "call")
        add(word);
      begins = false;
      continue;
    }
    lexer.advance();
    if (c == '@') lexer.accept('!'), lexer.word();
    begins = c == '@' || c == ';' || c == '{' || c == '}' || c == ':';
  }
}

MemoryKind kind_of(const Variable& v) { return v.is_managed ? MemoryKind::managed : MemoryKind::module; }

}  // namespace

std::string Kernel::where(const Instruction* i) const {
  // The compiler's own code has line 0: it gets the line of a jump to here, or of the code before.
  const Instruction* named = i;
  for (int steps = 0; steps < 256 && lines[named->line].line == 0 && lines[i->line].file != 0; ++steps) {
    if (named <= code.data() || named >= code.data() + code.size()) break;
    const auto jump = std::ranges::find_if(code, [&](const Instruction& from) {
      return (from.flags & kJump) != 0 && reinterpret_cast<const char*>(&from) + static_cast<int64_t>(from.imm) ==
                                              reinterpret_cast<const char*>(named);
    });
    named = (named->flags & kLeader) != 0 && jump != code.end() ? &*jump : named - 1;
  }
  return describe_line(module->text().files, lines, lines[named->line].line != 0 ? named->line : i->line);
}

Module::Module(std::string ptx, int device, int capability)
    : text_(parse_module(std::move(ptx))), device_(device), capability_(capability) {
  static std::atomic<uint64_t> modules{0};
  number_ = ++modules;
  if (text_->target > capability || (text_->arch_specific && text_->target != capability))
    throw Fault(FaultCode::unsupported,
                cat("PTX for sm_", text_->target, text_->arch_specific ? "a" : "",
                    " does not run on a GPU of compute capability ", capability / 10, ".", capability % 10));
  for (Function& f : text_->functions) functions_[f.name] = &f;
  for (const Variable& v : text_->variables) {
    if (!has_memory(v)) continue;
    char* const data = static_cast<char*>(allocate(v.bytes, kind_of(v), device));
    if (data == nullptr) throw Fault(FaultCode::out_of_memory, cat("no memory for variable ", v.name));
    std::memset(data, 0, v.bytes);
    std::copy(v.content.begin(), v.content.end(), data);
    if (v.space == Space::constant) make_read_only(data);
    places_[v.name] = {data, v.bytes};
  }
  for (const Variable& v : text_->variables) {
    if (!has_memory(v)) continue;
    for (const Variable::Address& a : v.addresses) {
      const char* const target = variable(a.name);
      const Function* const f = function(a.name);
      if (target == nullptr && f == nullptr)
        throw Fault(FaultCode::unsupported,
                    cat("variable ", v.name, " begins as the address of ", a.name, ", which has none"));
      const uint64_t begin = target != nullptr ? reinterpret_cast<uint64_t>(target) : function_address(*f);
      const uint64_t address = (begin + static_cast<uint64_t>(a.offset)) >> a.shift;
      std::memcpy(places_[v.name].data + a.at, &address, a.bytes);
    }
  }
}

Module::~Module() {
  for (const Variable& v : text_->variables)
    if (const auto place = places_.find(v.name); place != places_.end() && has_memory(v))
      release(place->second.data, kind_of(v));
}

uint64_t Module::function_address(const Function& f) const {
  return kCodeWindow | number_ << 32 | static_cast<uint64_t>(&f - text_->functions.data() + 1) << 4;
}

const Function* Module::function_at(uint64_t address) const {
  for (const Function& f : text_->functions)
    if (function_address(f) == address) return &f;
  return nullptr;
}

const std::vector<Function*>& Module::pointed_functions() {
  if (std::exchange(has_pointed_, true)) return pointed_;
  std::unordered_set<Function*> seen;
  const auto add = [&](std::string_view name) {
    Function* const f = function(name);
    if (f != nullptr && !f->is_kernel && f->body.data() != nullptr && seen.insert(f).second) pointed_.push_back(f);
  };
  for (const Variable& v : text_->variables)
    for (const Variable::Address& a : v.addresses) add(a.name);
  for (const Function& f : text_->functions)
    if (f.body.data() != nullptr) for_each_operand_name(f, add);
  return pointed_;
}

const Kernel* Module::kernel(std::string_view name) {
  Function* const f = function(name);
  if (f == nullptr || !f->is_kernel || f->body.data() == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Kernel>& kernel = kernels_[f->name];
  if (kernel != nullptr) return kernel.get();
  const double begun = counts() ? thread_seconds() : 0;
  kernel = lower(*this, *f);
  if (counts()) count_compilation(*kernel, thread_seconds() - begun);
  return kernel.get();
}

bool Module::has_kernel(std::string_view name) const {
  const auto found = functions_.find(name);
  return found != functions_.end() && found->second->is_kernel && found->second->body.data() != nullptr;
}

std::vector<std::string_view> Module::kernel_names() const {
  std::vector<std::string_view> names;
  for (const Function& f : text_->functions)
    if (f.is_kernel && f.body.data() != nullptr) names.push_back(f.name);
  return names;
}

char* Module::variable(std::string_view name, uint64_t* bytes) const {
  const auto found = places_.find(name);
  if (found == places_.end()) return nullptr;
  if (bytes != nullptr) *bytes = found->second.bytes;
  return found->second.data;
}

Function* Module::function(std::string_view name) {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace emulator::ptx
