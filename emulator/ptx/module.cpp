// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "emulator/machine/fault.h"
#include "emulator/machine/memory.h"
#include "emulator/ptx/count.h"
#include "emulator/ptx/inline.h"
#include "emulator/ptx/lowering.h"

namespace emulator::ptx {

namespace {

bool has_memory(const Variable& v) {
  return (v.space == Space::global || v.space == Space::constant) && !v.is_external && v.bytes > 0;
}

MemoryKind kind_of(const Variable& v) { return v.is_managed ? MemoryKind::managed : MemoryKind::module; }

}  // namespace

std::string Kernel::where(const Instruction* i) const { return describe_line(module->text().files, lines, i->line); }

Module::Module(std::string ptx, int device, int capability)
    : text_(parse_module(std::move(ptx))), device_(device), capability_(capability) {
  if (text_->target > capability || (text_->arch_specific && text_->target != capability))
    throw Fault(FaultCode::unsupported,
                cat("PTX for sm_", text_->target, text_->arch_specific ? "a" : "",
                    " does not run on a GPU of compute capability ", capability / 10, ".", capability % 10));
  for (Function& f : text_->functions) functions_[f.name] = &f;
  for (const Variable& v : text_->variables) {
    if (!has_memory(v)) continue;
    char* const data = static_cast<char*>(allocate(v.bytes, kind_of(v), device));
    if (data == nullptr) throw Fault(FaultCode::unsupported, cat("no memory for variable ", v.name));
    std::memset(data, 0, v.bytes);
    std::copy(v.content.begin(), v.content.end(), data);
    places_[v.name] = {data, v.bytes};
  }
  for (const Variable& v : text_->variables) {
    if (!has_memory(v)) continue;
    for (const Variable::Address& a : v.addresses) {
      // The address of a function stays 0: calls through pointers are refused.
      const char* const target = variable(a.name);
      if (target == nullptr && function(a.name) == nullptr)
        throw Fault(FaultCode::unsupported,
                    cat("variable ", v.name, " begins as the address of ", a.name, ", which has none"));
      if (target == nullptr) continue;
      const uint64_t address = (reinterpret_cast<uint64_t>(target) + static_cast<uint64_t>(a.offset)) >> a.shift;
      std::memcpy(places_[v.name].data + a.at, &address, a.bytes);
    }
  }
}

Module::~Module() {
  for (const Variable& v : text_->variables)
    if (const auto place = places_.find(v.name); place != places_.end() && has_memory(v))
      release(place->second.data, kind_of(v));
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
