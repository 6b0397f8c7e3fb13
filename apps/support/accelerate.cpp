// SPDX-License-Identifier: Apache-2.0
#include "apps/support/accelerate.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "apps/support/yaml.h"
#include "core/text.h"

namespace weft::support {
namespace {

constexpr double kMost = 1 << 20;

constexpr const char* kOnlyPython = "it is for Python alone";
constexpr const char* kOnlyTpu = "it is for TPUs alone";
constexpr const char* kAnotherType = "distributed_type does not ask for it";

/// Keys without a meaning here, and why.
constexpr std::pair<const char*, const char*> kPassedOver[] = {
    {"debug", "collectives are always compared between ranks"},
    {"enable_cpu_affinity", "ranks run on all cores"},
    {"dynamo_backend", kOnlyPython},
    {"dynamo_config", kOnlyPython},
    {"ipex_config", kOnlyPython},
    {"downcast_bf16", kOnlyTpu},
    {"tpu_name", kOnlyTpu},
    {"tpu_zone", kOnlyTpu},
    {"tpu_vm", kOnlyTpu},
    {"tpu_env", kOnlyTpu},
    {"tpu_use_cluster", kOnlyTpu},
    {"tpu_use_sudo", kOnlyTpu},
    {"command_file", kOnlyTpu},
    {"commands", kOnlyTpu},
    {"deepspeed_config", kAnotherType},
    {"fsdp_config", kAnotherType},
    {"megatron_lm_config", kAnotherType},
    {"fp8_config", "mixed_precision does not ask for it"},
};

/// Kinds of jobs that the program chooses here.
constexpr std::pair<const char*, const char*> kOfTheProgram[] = {
    {"FSDP", "Weft's programs shard by a flag of their own: write MULTI_GPU here and give the program --parallel fsdp"},
    {"DEEPSPEED", "Weft shards as ZeRO's stage 3 does: write MULTI_GPU here and give the program --parallel fsdp"},
    {"MEGATRON_LM", "Weft has ddp and fsdp in its programs: write MULTI_GPU here and give the program --parallel"},
};

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
  file.read("compute_environment", word, {"LOCAL_MACHINE"});
  file.read("distributed_type", word);
  for (const auto& [type, cure] : kOfTheProgram)
    if (word == type) throw train::UsageError(file.where("distributed_type") + ": " + type + ": " + cure);
  file.read("distributed_type", word, {"NO", "MULTI_CPU", "MULTI_GPU"});
  bool is_fp16 = false;  // accelerate 0.6's
  if (file.read("fp16", is_fp16) && is_fp16) config.mixed_precision = "fp16";
  file.read("mixed_precision", config.mixed_precision, {"no", "bf16", "fp16"});
  file.read("num_machines", config.num_machines, {.min = 1, .max = kMost});
  file.read("num_processes", config.num_processes, {.min = 1, .max = kMost});
  file.read("machine_rank", config.machine_rank, {.min = 0, .max = kMost});
  file.read("main_process_ip", config.main_process_ip);
  file.read("main_process_port", config.main_process_port, {.min = 1, .max = 65535});
  file.read("rdzv_backend", config.rdzv_backend);
  file.read("gpu_ids", config.gpu_ids);
  file.read("use_cpu", config.use_cpu);
  file.ignore("same_network");
  file.ignore("main_training_function");
  for (const auto& [name, value] : file.settings("mpirun_config"))
    if (name == "mpirun_hostfile")
      throw train::UsageError(file.where("mpirun_config") + ": start mpirun itself: mpirun --hostfile FILE PROGRAM");
  for (const auto& [name, value] : file.settings("parallelism_config"))
    if (name.ends_with("_size") && value != "1")
      throw train::UsageError(printable(file.where("parallelism_config") + ": " + name + " " + value) +
                              ": the program shards: leave it out and give the program --parallel fsdp");
  for (const auto& [key, why] : kPassedOver)
    if (!file.settings(key).empty()) config.notes.push_back(file.where(key) + " is passed over: " + why);
  file.finish();
  return config;
}

bool export_rank(const AccelerateConfig& config) {
  const bool launched = std::getenv("RANK") != nullptr && std::getenv("WORLD_SIZE") != nullptr;
  if (!launched && config.num_processes == 0 && (config.machine_rank > 0 || !config.main_process_ip.empty()))
    throw train::UsageError(str("--num-processes: expected the number of all machines' processes beside ",
                                config.machine_rank > 0 ? "--machine-rank" : "--main-process-ip"));
  if (config.num_processes == 0 || launched) return false;
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
