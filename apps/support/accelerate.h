// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weft::support {

/// The settings of `accelerate launch` for a job, from its flags or by the YAML file of --config_file. Negative, 0 and
/// empty: not said.
struct AccelerateConfig {
  int64_t num_machines = 0;
  int64_t num_processes = 0;  ///< on all machines together
  int64_t machine_rank = -1;
  std::string main_process_ip = {};
  int64_t main_process_port = 0;
  std::string mixed_precision = {};  ///< `no`, `bf16` or `fp16`
  std::string rdzv_backend = {};     ///< torchrun's: `c10d` numbers the machines itself
  std::string gpu_ids = {};          ///< which GPUs the processes of a machine use: `0,2`, or `all`
  bool use_cpu = false;
  std::vector<std::string> notes = {};  ///< a line for each setting that was passed over

  /// Processes on each machine (1 where nothing is said). Errors: train::UsageError when they do not divide.
  int64_t processes_per_machine() const;
};

/// Reads a file such as
///   compute_environment: LOCAL_MACHINE
///   distributed_type: MULTI_GPU
///   num_machines: 2
///   mixed_precision: "no"
/// as accelerate wrote it since version 0.6, in YAML or JSON. Settings for Python alone are passed over, with a note
/// where they are set to something. Errors: UsageErrors of YamlSection; an environment or kind of job that Weft has
/// not, with what to write instead.
AccelerateConfig read_accelerate_config(const std::filesystem::path& path);

/// For a program that is itself the only process of its machine: puts RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT into the environment, where dist::init() reads them. Nothing where num_processes is not
/// said or RANK and WORLD_SIZE are set already: their launcher knows better. True: there are others to wait for.
/// Errors: UsageErrors; several processes per machine need weft-run.
bool export_rank(const AccelerateConfig& config);

}  // namespace weft::support
