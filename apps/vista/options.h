// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace weft::vista {

/// The arguments and flags of single_gpu and multinode; see options.cpp for what `--help` says about them.
struct Options {
  int64_t total_epochs = 0;
  int64_t save_every = 0;
  int64_t batch_size = 32;
  double lr = 1e-3;
  std::string loss = "mse";
  int64_t seed = 0;
  std::string device = "auto";
  std::string backend = "auto";  ///< of multinode
  std::string log_dir;           ///< '': no metrics are kept
  bool dry_run = false;
};

/// Reads the command line and --config. `multinode`: flags that only several ranks need. False: --help was printed.
/// Errors: UsageError, see support::Flags.
bool parse_options(const std::string& program, int argc, char** argv, Options& options);

}  // namespace weft::vista
