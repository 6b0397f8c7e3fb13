// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/ptx/parse/ast.h"
#include "emulator/ptx/run/instruction.h"

namespace emulator::ptx {

class Module;
struct DebugTable;
struct ProfileTable;
struct TimeTable;
struct ValueFlow;

/// A function placed after a kernel's code, for calls that are not inlined.
struct CalledFunction {
  const Function* function = nullptr;
  size_t code = 0;       ///< its first instruction
  uint64_t address = 0;  ///< Module::function_address
};

struct Parameter {
  uint32_t offset, bytes, align;
};

/// A kernel ready to run.
struct Kernel {
  std::string name;  ///< mangled
  const Module* module = nullptr;
  std::vector<Instruction> code;  ///< the last one never runs: it reports a body that does not end
  uint32_t register_bytes = 0;    ///< bytes per warp
  uint32_t predicates = 0;        ///< predicates per warp
  char* constants = nullptr;      ///< 64-byte aligned
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared = 0;  ///< bytes from kSharedBase on; dynamic shared memory follows, aligned to `dynamic_align`
  uint32_t dynamic_align = 16;
  uint32_t scratch = 0;      ///< where the kScratchBytes of cooperative groups begin in shared memory; 0: none
  uint32_t local_bytes = 0;  ///< bytes per lane, without the stack
  bool has_stack = false;    ///< calls, or asks for memory of the stack
  std::vector<CalledFunction> functions;
  int max_threads = 1024, required_threads[3] = {0, 0, 0};
  int min_blocks = 0;
  int cluster[3] = {0, 0, 0};    ///< .reqnctapercluster
  int registers_per_thread = 0;  ///< an estimate of ptxas's allocation; 0: unknown
  int launch_registers = 0;      ///< per thread in a kernel with setmaxnreg; 0: its bounds do not determine the number
  std::vector<Line> lines;
  std::vector<std::shared_ptr<void>> kept;  ///< the targets of Instruction::more
  std::shared_ptr<char> constants_owner;
  std::vector<Variable> shared_variables;  ///< for reports: names, with `bytes`; offsets in shared_offsets
  std::vector<uint32_t> shared_offsets;
  std::shared_ptr<const DebugTable> debug;      ///< for --break; else nullptr
  std::shared_ptr<const ProfileTable> profile;  ///< for --profile; else nullptr
  std::shared_ptr<const TimeTable> time;        ///< for --time; else nullptr
  std::shared_ptr<const ValueFlow> flow;        ///< for --check uninitialised; else nullptr

  /// `file.cu:12` or, without line information, `PTX line 345`; inlined calls after it.
  std::string where(const Instruction* i) const;
};

/// A module on one device: its variables have memory there, its kernels are compiled at their first launch.
class Module {
 public:
  /// Errors: Fault.
  Module(std::string ptx, int device, int capability);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// nullptr when there is none of this name. Errors: Fault with what cannot be compiled.
  const Kernel* kernel(std::string_view name);
  /// The names of all kernels, and whether a kernel exists (without compiling).
  bool has_kernel(std::string_view name) const;
  std::vector<std::string_view> kernel_names() const;
  /// The address of a .global or .const variable, nullptr when there is none.
  char* variable(std::string_view name, uint64_t* bytes = nullptr) const;
  /// A kernel or device function of this name, as parsed so far; nullptr when there is none.
  Function* function(std::string_view name);
  /// The result of `mov %rd, f`: not an address of memory; indirect calls map it to the function.
  uint64_t function_address(const Function& f) const;
  const Function* function_at(uint64_t address) const;  ///< nullptr: of this module, none has this address
  /// The device functions whose addresses are taken, in code or as a variable's first value.
  const std::vector<Function*>& pointed_functions();
  const Text& text() const { return *text_; }
  int device() const { return device_; }
  int capability() const { return capability_; }

 private:
  std::unique_ptr<Text> text_;
  int device_, capability_;
  struct Place {
    char* data;
    uint64_t bytes;
  };
  std::unordered_map<std::string_view, Place> places_;
  std::unordered_map<std::string_view, std::unique_ptr<Kernel>> kernels_;
  std::unordered_map<std::string_view, Function*> functions_;
  uint64_t number_;  ///< unique over the process
  std::vector<Function*> pointed_;
  bool has_pointed_ = false;
  std::mutex mutex_;
  friend class Lowering;
};

}  // namespace emulator::ptx
