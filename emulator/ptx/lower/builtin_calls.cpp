// SPDX-License-Identifier: Apache-2.0
// The functions that CUDA's device runtime provides to kernels by name.
#include <algorithm>
#include <cstdio>

#include "emulator/machine/fresh.h"
#include "emulator/machine/memory.h"
#include "emulator/ptx/check/checker.h"
#include "emulator/ptx/instructions/control.h"
#include "emulator/ptx/instructions/lanes.h"
#include "emulator/ptx/run/device_launch.h"

namespace emulator::ptx {

namespace {

struct CallForm {
  struct Place {
    Ref at = kNoRef;
    int bytes = 0;
  };
  std::vector<Place> arguments;
  Place result;
};

class Call {
 public:
  Call(Warp& w, const Instruction* i, int lane)
      : w_(w), i_(i), lane_(lane), form_(*static_cast<const CallForm*>(i->more)) {}

  uint64_t argument(size_t n) const {
    const CallForm::Place& place = form_.arguments[n];
    return place.bytes == 4 ? w_.in<uint32_t>(place.at)[lane_] : w_.in<uint64_t>(place.at)[lane_];
  }
  void give(uint64_t value) const {
    if (form_.result.at == kNoRef) return;
    if (form_.result.bytes == 4)
      w_.out<uint32_t>(form_.result.at)[lane_] = static_cast<uint32_t>(value);
    else
      w_.out<uint64_t>(form_.result.at)[lane_] = value;
  }
  template <class T>
  T at(uint64_t address) const {
    T value;
    const char* const from = resolve_generic(w_, i_, lane_, address, sizeof(T), false);
    if (any_fresh(from, sizeof(T)))
      w_.block->checks->report_undefined(
          w_, i_, lane_,
          cat("the call reads ", sizeof(T), " bytes that were never written, or with a value of such bytes"));
    std::memcpy(&value, from, sizeof(T));
    return value;
  }
  /// For writing.
  char* memory(uint64_t address, uint32_t bytes) const { return resolve_generic(w_, i_, lane_, address, bytes, true); }
  /// The text at a generic address.
  std::string text(uint64_t address) const {
    std::string found;
    if (address == 0) return "(null)";
    for (;; ++address) {
      const char c = at<char>(address);
      if (c == 0) return found;
      found += c;
    }
  }
  [[noreturn]] void fail(FaultCode code, const std::string& what) const { w_.fail(i_, lane_, code, what); }

  const Warp& warp() const { return w_; }
  int lane() const { return lane_; }

 private:
  Warp& w_;
  const Instruction* i_;
  int lane_;
  const CallForm& form_;
};

/// printf's arguments, each aligned to its size.
class Arguments {
 public:
  Arguments(const Call& call, uint64_t address) : call_(call), address_(address), next_(address) {}
  template <class T>
  T next() {
    next_ = address_ + (next_ - address_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const T value = call_.at<T>(next_);
    next_ += sizeof(T);
    ++count_;
    return value;
  }
  std::string text() { return call_.text(next<uint64_t>()); }
  int count() const { return count_; }

 private:
  const Call& call_;
  uint64_t address_, next_;
  int count_ = 0;
};

template <class T>
void print_one(std::string& out, const std::string& spec, T value) {
  const int length = std::snprintf(nullptr, 0, spec.c_str(), value);
  if (length <= 0) return;
  const size_t end = out.size();
  out.resize(end + static_cast<size_t>(length) + 1);
  std::snprintf(out.data() + end, static_cast<size_t>(length) + 1, spec.c_str(), value);
  out.pop_back();
}

/// Programming Guide, "Formatted Output": what the host's printf does, but for %n and wide characters.
std::string formatted(const std::string& format, Arguments& arguments) {
  std::string out;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    const size_t begin = at++;
    std::string spec = "%";
    const auto number = [&] {
      if (at < format.size() && format[at] == '*') {
        ++at;
        spec += std::to_string(arguments.next<int32_t>());
      }
      while (at < format.size() && format[at] >= '0' && format[at] <= '9') spec += format[at++];
    };
    while (at < format.size() && std::string_view("-+ #0").find(format[at]) != std::string_view::npos)
      spec += format[at++];
    number();
    if (at < format.size() && format[at] == '.') {
      spec += format[at++];
      number();
    }
    bool is_long = false;
    while (at < format.size() && std::string_view("hlLjzt").find(format[at]) != std::string_view::npos) {
      is_long = is_long || format[at] != 'h';
      if (format[at] == 'h') spec += 'h';
      ++at;
    }
    const char kind = at < format.size() ? format[at++] : '\0';
    switch (kind) {
      case '%':
        out += '%';
        break;
      case 'd':
      case 'i':
        if (is_long)
          print_one(out, spec + "lld", static_cast<long long>(arguments.next<int64_t>()));
        else
          print_one(out, spec + 'd', arguments.next<int32_t>());
        break;
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        if (is_long)
          print_one(out, spec + "ll" + kind, static_cast<unsigned long long>(arguments.next<uint64_t>()));
        else
          print_one(out, spec + kind, arguments.next<uint32_t>());
        break;
      case 'c':
        print_one(out, spec + 'c', arguments.next<int32_t>());
        break;
      case 'p':
        print_one(out, spec + 'p', reinterpret_cast<void*>(arguments.next<uint64_t>()));
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        print_one(out, spec + kind, arguments.next<double>());
        break;
      case 's':
        print_one(out, spec + 's', arguments.text().c_str());
        break;
      default:  // not a conversion: the plain text
        out += format.substr(begin, at - begin);
        break;
    }
  }
  return out;
}

void print(const Call& call) {
  const std::string format = call.text(call.argument(0));
  Arguments arguments(call, call.argument(1));
  const std::string out = formatted(format, arguments);
  std::fwrite(out.data(), 1, out.size(), stdout);
  call.give(static_cast<uint64_t>(arguments.count()));
}

void take_memory(const Call& call) {
  const uint64_t bytes = call.argument(0);
  void* const memory = bytes ? allocate(bytes, MemoryKind::device, call.warp().block->grid->launch->device) : nullptr;
  call.give(reinterpret_cast<uint64_t>(memory));
}

/// Stores what a call gives through its first argument.
void store_result(const Call& call, uint64_t value) {
  char* const memory = call.memory(call.argument(0), sizeof(value));
  std::memcpy(memory, &value, sizeof(value));
  mark_written(memory, sizeof(value));
}

/// cudaMalloc and cudaFree of kernels: they return cudaError_t.
void take_device_memory(const Call& call) {
  constexpr uint64_t kNoMemory = 2;
  const uint64_t bytes = call.argument(1);
  void* const memory = bytes ? allocate(bytes, MemoryKind::device, call.warp().block->grid->launch->device) : nullptr;
  store_result(call, reinterpret_cast<uint64_t>(memory));
  call.give(bytes && !memory ? kNoMemory : 0);
}
void free_device_memory(const Call& call) {
  constexpr uint64_t kInvalidValue = 1;
  const uint64_t address = call.argument(0);
  call.give(address == 0 || release(reinterpret_cast<void*>(address), MemoryKind::device) ? 0 : kInvalidValue);
}

void free_memory(const Call& call) {
  const uint64_t address = call.argument(0);
  if (address != 0 && !release(reinterpret_cast<void*>(address), MemoryKind::device))
    call.fail(FaultCode::launch_failure,
              cat("free of ", describe_address(address), ": nothing that malloc gave begins there"));
}

void set_condition(const Call& call) {
  const uint64_t handle = call.argument(0);
  if (!set_graph_condition || !set_graph_condition(handle, static_cast<uint32_t>(call.argument(1))))
    call.fail(FaultCode::launch_failure,
              cat("cudaGraphSetConditional of ", handle, ": no handle that cudaGraphConditionalHandleCreate gave"));
}

void begin_launch(const Call& call) {
  const auto dim = [&](size_t n) {
    const auto x = [&](size_t i) { return static_cast<uint32_t>(call.argument(n + i)); };
    return Dim3{x(0), x(1), x(2)};
  };
  DeviceLaunches& launches = *call.warp().block->grid->launches;
  call.give(reinterpret_cast<uint64_t>(
      launches.begin(call.warp(), call.lane(), call.argument(0), dim(1), dim(4), static_cast<uint32_t>(call.argument(7)))));
}

void launch(const Call& call) {
  call.give(static_cast<uint64_t>(call.warp().block->grid->launches->launch(call.warp(), call.lane(), call.argument(0), call.argument(1))));
}

template <bool kForgets>
void last_error(const Call& call) {
  call.give(static_cast<uint64_t>(call.warp().block->grid->launches->error(call.warp(), call.lane(), kForgets)));
}

/// Streams and events of kernels order nothing more: a block's launches run one after the other.
void create(const Call& call) {
  store_result(call, 16);  // above the names of streams
  call.give(0);
}
void succeed(const Call& call) { call.give(0); }

std::string assertion_text(const Call& call) {
  const Warp& w = call.warp();
  const Dim3 index = w.block->index, size = w.block->grid->launch->block;
  const uint32_t thread = w.first_thread + static_cast<uint32_t>(call.lane());
  return cat(call.text(call.argument(1)), ':', call.argument(2), ": ", call.text(call.argument(3)), ": block: [",
             index.x, ',', index.y, ',', index.z, "], thread: [", thread % size.x, ',', thread / size.x % size.y, ',',
             thread / size.x / size.y, "] Assertion `", call.text(call.argument(0)), "` failed.\n");
}

template <void (*Function)(const Call&)>
const Instruction* run_call(Warp& w, const Instruction* i) {
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) Function(Call(w, i, std::countr_zero(left)));
  return i + 1;
}

/// Every failing thread reports before the kernel ends.
const Instruction* run_assertion(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  if (lanes == 0) return i + 1;
  std::string all;
  for (uint32_t left = lanes; left != 0; left &= left - 1) all += assertion_text(Call(w, i, std::countr_zero(left)));
  std::fwrite(all.data(), 1, all.size(), stderr);
  const int first = std::countr_zero(lanes);
  const Call call(w, i, first);
  call.fail(FaultCode::assertion, cat("assertion `", call.text(call.argument(0)), "` failed"));
}

struct Builtin {
  std::string_view name;
  size_t arguments;
  Handler run;
};
constexpr Builtin kBuiltins[] = {
    {"vprintf", 2, run_call<print>},
    {"malloc", 1, run_call<take_memory>},
    {"free", 1, run_call<free_memory>},
    {"__assertfail", 5, run_assertion},
    {"cudaGraphSetConditional", 2, run_call<set_condition>},
    {"__cudaCDP2GetParameterBufferV2", 8, run_call<begin_launch>},
    {"__cudaCDP2LaunchDeviceV2", 2, run_call<launch>},
    {"__cudaCDP2LaunchDeviceV2_ptsz", 2, run_call<launch>},
    {"__cudaCDP2GetLastError", 0, run_call<last_error<true>>},
    {"__cudaCDP2PeekAtLastError", 0, run_call<last_error<false>>},
    {"__cudaCDP2Malloc", 2, run_call<take_device_memory>},
    {"__cudaCDP2Free", 1, run_call<free_device_memory>},
    {"__cudaCDP2StreamCreateWithFlags", 2, run_call<create>},
    {"__cudaCDP2StreamDestroy", 1, run_call<succeed>},
    {"__cudaCDP2StreamWaitEvent", 3, run_call<succeed>},
    {"__cudaCDP2StreamWaitEvent_ptsz", 3, run_call<succeed>},
    {"__cudaCDP2EventCreateWithFlags", 2, run_call<create>},
    {"__cudaCDP2EventRecord", 2, run_call<succeed>},
    {"__cudaCDP2EventRecord_ptsz", 2, run_call<succeed>},
    {"__cudaCDP2EventDestroy", 1, run_call<succeed>},
};

}  // namespace

bool lower_builtin_call(Lowering& l) {
  const auto* const builtin = std::ranges::find(kBuiltins, l.callee(), &Builtin::name);
  if (builtin == std::end(kBuiltins)) return false;
  if (l.call_arguments() != builtin->arguments) l.unknown("number of arguments");
  CallForm form;
  for (size_t n = 0; n < builtin->arguments; ++n)
    form.arguments.push_back({l.call_argument(n), l.call_argument_bytes(n)});
  form.result = {l.call_result(), l.call_result_bytes()};
  l.emit(builtin->run).more = l.keep(std::move(form));
  return true;
}

}  // namespace emulator::ptx
