// SPDX-License-Identifier: Apache-2.0
#include "apps/support/accelerate.h"

#include <algorithm>
#include <cstdlib>

#include "apps/support/yaml.h"

namespace weft::support {
namespace {

constexpr double kMost = 1 << 20;

/// The keys of accelerate's files that choose among ways of starting Python.
constexpr const char* kPassedOver[] = {
    "debug",   "downcast_bf16",          "dynamo_backend", "dynamo_config", "enable_cpu_affinity",
    "gpu_ids", "main_training_function", "rdzv_backend",   "same_network",  "use_cpu",
    "tpu_env", "tpu_use_cluster",        "tpu_use_sudo"};

}  // namespace

int64_t AccelerateConfig::processes_per_machine() const {
  const int64_t machines = std::max<int64_t>(num_machines, 1), processes = num_processes > 0 ? num_processes : machines;
  if (processes % machines != 0)
    throw train::UsageError(
        str("--num-processes: expected a multiple of the ", machines, " machines, got ", processes));
  return processes / machines;
}

AccelerateConfig read_accelerate_config(const std::filesystem::path& path) {
  YamlSection file(path);
  AccelerateConfig config;
  std::string word;
  file.read_choice("compute_environment", word, {"LOCAL_MACHINE"});
  file.read_choice("distributed_type", word, {"NO", "MULTI_CPU", "MULTI_GPU"});
  file.read_choice("mixed_precision", config.mixed_precision, {"no", "bf16", "fp16"});
  file.read("num_machines", config.num_machines, {.min = 1, .max = kMost});
  file.read("num_processes", config.num_processes, {.min = 1, .max = kMost});
  file.read("machine_rank", config.machine_rank, {.min = 0, .max = kMost});
  file.read("main_process_ip", config.main_process_ip);
  file.read("main_process_port", config.main_process_port, {.min = 1, .max = 65535});
  for (const char* key : kPassedOver) file.ignore(key);
  file.finish();
  return config;
}

bool export_rank(const AccelerateConfig& config) {
  if (config.num_processes == 0 || (std::getenv("RANK") != nullptr && std::getenv("WORLD_SIZE") != nullptr))
    return false;
  AccelerateConfig whole = config;
  if (whole.num_machines == 0) whole.num_machines = whole.num_processes;  // one process on each
  if (whole.processes_per_machine() != 1)
    throw train::UsageError(str("--num-processes: expected one process on each of the ", whole.num_machines,
                                " machines, got ", whole.num_processes,
                                ". weft-run takes the same flags and starts several on each"));
  if (whole.num_processes > 1 && whole.machine_rank < 0)
    throw train::UsageError("--machine-rank: expected 0 to " + std::to_string(whole.num_machines - 1) +
                            " beside --num-processes");
  if (whole.num_processes > 1 && whole.main_process_ip.empty())
    throw train::UsageError("--main-process-ip: expected the host of machine 0 beside --num-processes");
  if (whole.machine_rank >= whole.num_machines)
    throw train::UsageError(
        str("--machine-rank: expected 0 to ", whole.num_machines - 1, ", got ", whole.machine_rank));
  const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
  set("RANK", std::to_string(std::max<int64_t>(whole.machine_rank, 0)));
  set("WORLD_SIZE", std::to_string(whole.num_processes));
  set("LOCAL_RANK", "0");
  set("LOCAL_WORLD_SIZE", "1");
  if (!whole.main_process_ip.empty()) set("MASTER_ADDR", whole.main_process_ip);
  if (whole.main_process_port > 0) set("MASTER_PORT", std::to_string(whole.main_process_port));
  return whole.num_processes > 1;
}

}  // namespace weft::support
