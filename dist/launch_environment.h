// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>

#include "dist/address.h"

namespace weft::dist {

using EnvironmentVariables = std::map<std::string, std::string>;

/// The environment of this process.
EnvironmentVariables environment_variables();

/// A process's place in its job, as its launcher has put it into the environment.
struct LaunchEnvironment {
  /// Who says so: `RANK and WORLD_SIZE`, `Open MPI`, `PMIx`, `PMI`, `Slurm`, `alone`.
  std::string launcher = "alone";
  int rank = 0, size = 1;
  int local_rank = 0;  ///< among the ranks of this host; -1: not said
  int local_size = 1;  ///< ranks of this host; 0: not said
  int nodes = 1;       ///< 0: not said
  int restarts = 0;    ///< how often the launcher has started all ranks again
  /// This process has an identity of its own among MPI's ranks, and so may initialise MPI. False below torchrun and
  /// weft-run: their children share the identity of the launcher, when that was itself started by mpirun or srun.
  bool is_mpi_rank = false;
  int slurm_tasks = 0;  ///< tasks of the Slurm step that this process belongs to; 0: none
  /// Where rank 0's store is to listen. Empty host: not said, and cannot be told from the environment.
  Address master = {};
  /// A name of the job that all its ranks see, and other jobs do not where the launcher names jobs; may be empty.
  std::string job = {};

  /// All ranks run on this host.
  bool one_node() const { return nodes == 1 || local_size == size; }
};

/// Reads the variables in this order: RANK and WORLD_SIZE (torchrun, weft-run, accelerate, by hand); those of Open MPI,
/// PMIx or PMI; those of a Slurm *step*, because a program that is started in an allocation without srun is alone
/// whatever SLURM_NTASKS says; else alone. MASTER_ADDR may hold `host:port`. Errors: variables that contradict each
/// other, that are no numbers, or that are missing beside others.
LaunchEnvironment read_launch_environment(const EnvironmentVariables& variables);

}  // namespace weft::dist
