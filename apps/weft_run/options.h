// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "dist/address.h"

namespace weft::weft_run {

/// What the command line asks for; the names are torchrun's.
struct Options {
  std::string ranks_per_node = "1";  ///< a number, or auto, gpu, cpu
  int nodes = 1;
  std::optional<int> node_rank;          ///< none: agreed at the meeting point
  std::optional<dist::Address> meeting;  ///< where the launchers of several nodes meet
  std::optional<dist::Address> master;   ///< --master_addr and --master_port, as far as given
  std::string run = "none";
  int max_restarts = 0;
  std::string mixed_precision;  ///< accelerate's: `no`, `bf16`, `fp16`; empty: not said
  std::string log_folder;
  int grace = 10;           ///< seconds between SIGTERM and SIGKILL
  int start_timeout = 300;  ///< seconds for the launchers to come together
  std::vector<std::string> command;
};

/// Reads `weft-run [flags] PROGRAM [arguments]`. Flags may be written with `_` or `-`, with a space or `=`; all behind
/// the program's name is the program's. Empty: --help was asked for and printed. Errors: UsageError.
std::optional<Options> parse_options(const std::vector<std::string>& arguments);

/// How many ranks a node gets: a number as it is; `gpu` one for each GPU, `cpu` one for each core, `auto` the first of
/// these that is not 0. Errors: not such a text; `gpu` without GPUs.
int count_ranks(const std::string& text, int gpus, int cores);

}  // namespace weft::weft_run
