// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "dist/rendezvous/address.h"
#include "dist/rendezvous/launch_environment.h"

namespace weft::weft_run {

/// The command line; the names are torchrun's.
struct Options {
  std::string ranks_per_node = "1";  ///< a number, or auto, gpu, cpu
  int nodes = 1;
  std::optional<int> node_rank;          ///< none: assigned at the rendezvous
  std::optional<dist::Address> meeting;  ///< the rendezvous of several nodes' launchers
  std::optional<dist::Address> master;   ///< --master_addr and --master_port, as far as given
  std::string run = "none";
  int max_restarts = 0;
  std::string mixed_precision;      ///< accelerate's: `no`, `bf16`, `fp16`; empty: not given
  std::optional<std::string> gpus;  ///< CUDA_VISIBLE_DEVICES of the ranks; empty text: no GPU
  int threads = 0;                  ///< OMP_NUM_THREADS of a rank; 0: not given
  std::string role = "default";
  std::string log_folder;
  std::string explain;      ///< a folder of flight records; then there is no program
  int grace = 10;           ///< seconds between SIGTERM and SIGKILL
  int start_timeout = 300;  ///< seconds for the launchers to connect
  std::vector<std::string> command;
  std::vector<std::string> notes;  ///< lines for the user: ignored settings, values from variables
};

/// Reads `weft-run [flags] PROGRAM [arguments]`. Flags may be written with `_` or `-`, with a space or `=`; everything
/// after the program's name belongs to the program. Flags of torchrun that `variables` give by their names (PET_NNODES)
/// count where the line lacks them. Empty: --help was printed. Errors: UsageError.
std::optional<Options> parse_options(const std::vector<std::string>& arguments,
                                     const dist::EnvironmentVariables& variables = {});

/// The number of ranks of a node: the given number; `gpu`: one per GPU; `cpu`: one per core; `auto`: the first of these
/// that is not 0. Errors: another string; `gpu` without GPUs.
int count_ranks(const std::string& text, int gpus, int cores);

}  // namespace weft::weft_run
