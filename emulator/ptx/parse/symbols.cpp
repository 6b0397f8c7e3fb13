// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/parse/symbols.h"

#include <algorithm>
#include <unordered_set>

#include "emulator/machine/fault.h"
#include "emulator/ptx/run/warp.h"

namespace emulator::ptx {

namespace {

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint32_t checked(uint64_t bytes, std::string_view what, const Kernel& kernel) {
  if (bytes > (uint64_t{1} << 30))
    throw Fault(FaultCode::unsupported, cat("kernel ", kernel.name, ": too much ", what));
  return static_cast<uint32_t>(bytes);
}

void collect(const Operand& o, std::unordered_set<std::string_view>& names) {
  if ((o.kind == Operand::Kind::symbol && o.reg < 0) || o.kind == Operand::Kind::special) names.insert(o.name);
  for (const Operand& part : o.parts) collect(part, names);
}

}  // namespace

Symbols::Symbols(const Module& module, const Function& body, Kernel& kernel) : of_body_(body.variables.size()) {
  // Later ones hide earlier ones: a parameter's name comes before a variable of the module.
  for (const Variable& v : module.text().variables)
    if (char* const data = module.variable(v.name)) of_name_[v.name] = {reinterpret_cast<uint64_t>(data), v.space};
  place_shared(module, body, kernel);
  place_local(body, kernel);
  place_parameters(body, kernel);
}

const Symbols::Place* Symbols::find(const Operand& symbol) const {
  if (symbol.reg >= 0) return &of_body_[static_cast<size_t>(symbol.reg)];
  const auto found = of_name_.find(symbol.name);
  return found == of_name_.end() ? nullptr : &found->second;
}

void Symbols::place_parameters(const Function& body, Kernel& kernel) {
  uint64_t end = 0;
  for (const Variable& p : body.parameters) {
    end = round_up(end, p.align);
    kernel.parameters.push_back({static_cast<uint32_t>(end), checked(p.bytes, "parameters", kernel), p.align});
    of_name_[p.name] = {end, Space::param};
    end += p.bytes;
  }
  kernel.parameter_bytes = checked(end, "parameters", kernel);
}

void Symbols::place_local(const Function& body, Kernel& kernel) {
  uint64_t end = 0;
  for (size_t i = 0; i < body.variables.size(); ++i) {
    const Variable& v = body.variables[i];
    if (v.space != Space::local || v.base >= 0) continue;
    end = round_up(end, v.align);
    of_body_[i] = {end, Space::local};
    end += v.bytes;
  }
  kernel.local_bytes = checked(round_up(end, 16), "local memory", kernel);
}

/// Only what the code names, as ptxas does: the others are other kernels' variables.
void Symbols::place_shared(const Module& module, const Function& body, Kernel& kernel) {
  std::unordered_set<std::string_view> names;
  for (const Statement& s : body.code)
    for (const Operand& o : s.operands) collect(o, names);

  uint64_t end = kSharedBase;
  std::vector<Place*> dynamic;
  const auto place = [&](const Variable& v, Place& out) {
    out = {0, Space::shared};
    if (v.bytes == 0) {
      kernel.dynamic_align = std::max(kernel.dynamic_align, v.align);
      dynamic.push_back(&out);
      return;
    }
    end = round_up(end, v.align);
    out.address = end;
    kernel.shared_variables.push_back(v);
    kernel.shared_offsets.push_back(static_cast<uint32_t>(end));
    end += v.bytes;
  };
  for (const Variable& v : module.text().variables)
    if (v.space == Space::shared && names.contains(v.name)) place(v, of_name_[v.name]);
  // A function that is inlined at several calls has its variables only once: they are one declaration in the text.
  std::unordered_map<const char*, size_t> first;
  for (size_t i = 0; i < body.variables.size(); ++i) {
    const Variable& v = body.variables[i];
    if (v.space == Space::shared && first.emplace(v.name.data(), i).second) place(v, of_body_[i]);
  }
  kernel.static_shared = checked(end - kSharedBase, "shared memory", kernel);
  // Cooperative groups' scratch is a variable here, so that bounds are checked. On a GPU the system's own bytes hold
  // it.
  if (names.contains("reserved_smem_offset_1")) {
    Variable scratch;
    scratch.name = "reserved_smem_offset_1";
    scratch.space = Space::shared;
    scratch.align = 8;
    scratch.bytes = kScratchBytes;
    Place unnamed;
    place(scratch, unnamed);
    kernel.scratch = kernel.shared_offsets.back();
  }
  const uint64_t after = round_up(end, kernel.dynamic_align);
  for (Place* const p : dynamic) p->address = after;
  for (size_t i = 0; i < body.variables.size(); ++i)
    if (body.variables[i].space == Space::shared) of_body_[i] = of_body_[first.at(body.variables[i].name.data())];
}

}  // namespace emulator::ptx
