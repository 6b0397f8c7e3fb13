// SPDX-License-Identifier: Apache-2.0
#include "apps/ml_dist/options.h"

#include "apps/support/run_flags.h"

namespace weft::ml_dist {

std::string mode_of_program(const std::string& program) {
  const auto has = [&](const char* part) { return program.find(part) != std::string::npos; };
  if (has("base")) return "base";
  if (has("ddp")) return "ddp";
  if (has("horovod")) return "mpi";
  return "auto";
}

bool parse_options(const std::string& program, int argc, char** argv, Options& o) {
  o.mode = mode_of_program(program);
  support::Flags flags(program, "Trains a small convolutional network on MNIST, or on any set in its place.");
  flags.group("Training");
  flags.add("test-batch-size", o.test_batch_size, "images at once when testing", {.min = 1, .max = 1e6});
  flags.add("lr", o.lr, "learning rate of Adadelta, times the number of ranks", {.min = 0});
  flags.add("gamma", o.gamma, "factor of the learning rate after each epoch", {.min = 0, .above = true});
  support::add_run_flags(flags, o, "epochs batch-size device backend seed");
  flags.add("no-cuda", o.no_cuda, "use the CPU even where there is a GPU");
  flags.group("Run");
  flags.add("dry-run", o.dry_run, "one batch per epoch, and nothing is written");
  flags.add("log-interval", o.log_interval, "a line of loss after so many batches", {.min = 1});
  flags.add("save-model", o.save_model, "write mnist_cnn.pt into --output-dir at the end");
  flags.add("data-dir", o.data_dir, "folder that holds MNIST/raw/ with the four IDX files, plain or .gz");
  flags.add("output-dir", o.output_dir, "folder of the model");
  flags.add_choice("mode", o.mode, {"auto", "base", "ddp", "mpi", "horovod"},
                   "base: one process; ddp: gradients averaged during backward; mpi (or horovod): by the optimizer; "
                   "auto: ddp where there are several ranks, else base");
  flags.add("log-dir", o.log_dir,
            "folder for metrics.jsonl, TensorBoard files and config.yaml, as weft-watch draws them; none: not kept");
  flags.example(program + " --data-dir data --save-model");
  if (o.mode != "base") flags.example("weft-run --nproc_per_node 4 " + program + " --data-dir data --epochs 3");
  if (!flags.parse(argc, argv)) return false;
  if (o.no_cuda && o.device != "auto" && o.device != "cpu")
    throw train::UsageError("--no-cuda: expected no other --device, got --device " + o.device);
  if (o.no_cuda) o.device = "cpu";
  if (o.mode == "horovod") o.mode = "mpi";
  o.toml = flags.toml();
  return true;
}

}  // namespace weft::ml_dist
