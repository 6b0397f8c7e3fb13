// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace weft::support {

/// What `accelerate launch` is told of a job, by its flags or by the YAML file of --config_file. Negative, 0 and empty:
/// not said.
struct AccelerateConfig {
  int64_t num_machines = 0;
  int64_t num_processes = 0;  ///< on all machines together
  int64_t machine_rank = -1;
  std::string main_process_ip = {};
  int64_t main_process_port = 0;
  std::string mixed_precision = {};  ///< `no`, `bf16` or `fp16`

  /// Processes on each machine (1 where nothing is said). Errors: train::UsageError when they do not divide.
  int64_t processes_per_machine() const;
};

/// Reads a file such as
///   compute_environment: LOCAL_MACHINE
///   distributed_type: MULTI_GPU
///   num_machines: 2
///   mixed_precision: "no"
/// Keys that say how Python processes are started mean nothing here and are passed over. Errors: UsageErrors of
/// YamlSection; an environment or kind of job that Weft has not, a value that is none.
AccelerateConfig read_accelerate_config(const std::filesystem::path& path);

/// For a program that is itself the only process of its machine: puts RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT into the environment, where dist::init() reads them. Nothing where num_processes is not
/// said or RANK and WORLD_SIZE are set already: their launcher knows better. True: there are others to wait for.
/// Errors: UsageErrors; several processes per machine need weft-run.
bool export_rank(const AccelerateConfig& config);

}  // namespace weft::support
