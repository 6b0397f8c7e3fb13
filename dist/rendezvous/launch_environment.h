// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dist/rendezvous/address.h"

namespace weft::dist {

/// The hosts of a Slurm node list, in its order: `jwb[0021-0024,0030],login1` is jwb0021 … jwb0024, jwb0030, login1;
/// of several brackets in one name the last changes fastest; leading zeros are kept (srun(1),
/// `scontrol show hostnames`). Errors: not such a list; more than 65,536 hosts.
std::vector<std::string> parse_node_list(std::string_view list);

/// The name under which another node reaches `host` on the fast network. On JSC's systems juwels, juwelsbooster and
/// jureca (by the variable SYSTEMNAME) that is the name with an `i` after its first part; elsewhere the name itself.
std::string fast_network_name(const std::string& host, const std::string& system);

using EnvironmentVariables = std::map<std::string, std::string>;

/// The environment of this process.
EnvironmentVariables environment_variables();

/// A process's rank and job, as its launcher states them in environment variables.
struct LaunchEnvironment {
  /// The source: `RANK and WORLD_SIZE`, `Open MPI`, `PMIx`, `PMI`, `Slurm`, `alone`.
  std::string launcher = "alone";
  int rank = 0, size = 1;
  int local_rank = 0;  ///< among the ranks of this host; -1: unknown
  int local_size = 1;  ///< ranks of this host; 0: unknown
  int nodes = 1;       ///< 0: unknown
  int restarts = 0;    ///< how often the launcher has restarted all ranks
  /// This process has its own MPI rank, so it may initialise MPI. False below torchrun and weft-run: their children
  /// share the MPI identity of the launcher if mpirun or srun started that.
  bool is_mpi_rank = false;
  int slurm_tasks = 0;  ///< tasks of the Slurm step that this process belongs to; 0: none
  /// Where rank 0's store listens. Empty host: the environment does not tell.
  Address master = {};
  /// The job's name, the same on all its ranks; differs from other jobs' if the launcher names jobs. May be empty.
  std::string job = {};

  /// All ranks run on this host.
  bool one_node() const { return nodes == 1 || local_size == size; }
};

/// Reads the variables in this order: RANK and WORLD_SIZE (torchrun, weft-run, accelerate, by hand); those of Open MPI,
/// PMIx or PMI; those of a Slurm *step* (a program that is started in an allocation without srun is alone, whatever
/// SLURM_NTASKS says); else alone. MASTER_ADDR may be `host:port`. Errors: variables that contradict each other, are no
/// numbers, or are missing although related ones are set.
LaunchEnvironment read_launch_environment(const EnvironmentVariables& variables);

}  // namespace weft::dist
