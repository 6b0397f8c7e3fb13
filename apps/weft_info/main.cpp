// SPDX-License-Identifier: Apache-2.0
// Reports whether a GPU can be used, and the parts of this build; see docs/workflows/vista.md.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "apps/support/flags.h"
#include "core/choose_device.h"
#include "core/emulated.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "dist/rendezvous/launch_environment.h"
#include "dist/rendezvous/rank_place.h"
#include "io/hdf5/hdf5_state.h"
#include "kernels/engines/cublaslt.h"
#include "kernels/engines/cudnn.h"
#include "kernels/runtime/runtime.h"

namespace weft::weft_info {
namespace {

/// A row of the table that configuring prints.
struct Part {
  bool found;
  const char *name, *gives, *cure;
};
#include "build_facts.h"

/// The driver's version; nothing without a driver.
std::string driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return line;
}

/// Computes on the device; empty if the result is right, else the error.
std::string why_not(Device device) {
  try {
    const Tensor ones = Tensor::ones({1 << 16}, DType::f32, device);
    const double total = sum(add(ones, ones)).item();
    return total == 2 << 16 ? "" : str("65536 additions of 1 and 1 gave ", total);
  } catch (const std::exception& error) {
    return error.what();
  }
}

struct Usable {
  Device device;
  std::string reason;  ///< why no GPU is usable; empty: `device` is
};

/// The first GPU that computes, else why the first one does not.
Usable find_usable() {
  kernels::Runtime& cuda = kernels::runtime(DeviceKind::cuda);
  int count = 0;
  try {
    count = cuda.device_count();
  } catch (const Error& error) {  // there is a driver, but it cannot be used
    return {{}, error.what()};
  }
  Usable result;
  for (int i = 0; i < count; ++i) {
    const Device device{DeviceKind::cuda, i};
    const std::string reason = why_not(device);
    if (reason.empty()) return {device, ""};
    if (result.reason.empty()) result.reason = str(device, ": ", reason);
  }
  if (count > 0) return result;
  try {
    return {{}, "there is none: " + cuda.describe(0)};
  } catch (const Error& error) {
    return {{}, driver().empty() ? str("there is no NVIDIA driver (", error.what(), ")") : error.what()};
  }
}

std::string launch() {
  try {
    const auto place = dist::read_launch_environment(dist::environment_variables());
    return str("rank ", place.rank, " of ", place.size, " (", place.launcher, ")");
  } catch (const Error& error) {
    return error.what();
  }
}

void row(const std::string& name, const std::string& text) { std::cout << fmt::format("{:<10}{}\n", name, text); }

void describe() {
  row("weft", str(support::version(), ", ", kBuild));
  const std::string found_driver = driver(), none = "none (no /proc/driver/nvidia/version)";
  row("driver", found_driver.empty() ? none : found_driver);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) row("visible", str("CUDA_VISIBLE_DEVICES=", visible));
  for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    try {
      for (int i = 0; i < kernels::runtime(kind).device_count(); ++i) row("device", weft::describe({kind, i}));
    } catch (const Error& error) {
      row("device", str(name(kind), ": ", error.what()));
    }
  }
  const std::filesystem::path emulator = find_weft_emulate();
  row("emulated", emulator.empty() ? "none: there is no weft-emulate here" : emulator.string() + ": --device emulated");
  for (const std::string& missing : {kernels::vendor::cublaslt::missing(), kernels::vendor::cudnn::missing()})
    if (!missing.empty()) row("engine", missing);
  if (kernels::vendor::cublaslt::missing().empty()) row("engine", kernels::vendor::cublaslt::version());
  if (kernels::vendor::cudnn::missing().empty()) row("engine", kernels::vendor::cudnn::version());
  std::string backends;
  for (const std::string& backend : dist::built_backends()) backends += (backends.empty() ? "" : ", ") + backend;
  row("backends", backends.empty() ? "none: ranks must be threads of one process" : backends);
  row("launch", launch());
  row("HDF5", describe_hdf5());
  for (const Part& part : kParts)
    row("part", fmt::format("{:<8}{:<15}{}{}", part.found ? "found" : "MISSING", part.name, part.gives,
                            part.found ? "" : fmt::format(". Cure: {}", part.cure)));
}

int run(int argc, char** argv) {
  bool quiet = false;
  support::Flags flags("weft-info",
                       "Says whether a GPU can be used (exit code 0: yes, 1: no), and what this build of Weft has.");
  flags.add("quiet", quiet, "the first line alone");
  flags.example("weft-info --quiet && train_image --data shapes --device cuda");
  if (!flags.parse(argc, argv)) return train::kExitOk;
  const Usable usable = find_usable();
  const bool yes = usable.reason.empty();
  std::cout << "GPU usable: " << (yes ? "yes, " + weft::describe(usable.device) : "no, " + usable.reason) << '\n';
  if (!quiet) describe();
  return yes ? train::kExitOk : train::kExitError;
}

}  // namespace
}  // namespace weft::weft_info

int main(int argc, char** argv) {
  return weft::train::guarded_main("weft-info", [&] { return weft::weft_info::run(argc, argv); });
}
