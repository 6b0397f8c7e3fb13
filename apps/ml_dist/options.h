// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "train/run_options.h"

namespace weft::ml_dist {

/// How a run is parallel, and how it prints.
enum class Mode {
  base,  ///< one process
  ddp,   ///< gradients averaged by dist::DDP
  mpi,   ///< averages by dist::DistributedOptimizer, as Horovod does
};

/// The flags of mnist, one field each; see options.cpp for what `--help` says about them.
struct Options : train::RunOptions {
  Options() { epochs = 16, batch_size = 64, lr = 1, log_interval = 10; }
  int64_t test_batch_size = 1000;
  double gamma = 0.7;
  bool no_cuda = false;
  bool save_model = false;
  std::string data_dir = "./data";
  std::string output_dir = "./output/default";
  std::string log_dir;  ///< '': no metrics are kept
  std::string mode = "auto";
};

/// The mode that a program's name asks for: `base` of mnist_base and base_training, `ddp`, `mpi` of mnist_horovod;
/// `auto` for any other.
std::string mode_of_program(const std::string& program);

/// Reads the command line and --config; errors and `--help` use the name `program`. False: --help was printed.
/// Errors: UsageError, see support::Flags.
bool parse_options(const std::string& program, int argc, char** argv, Options& options);

}  // namespace weft::ml_dist
