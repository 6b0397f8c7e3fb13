// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_run/options.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "apps/support/accelerate.h"
#include "apps/support/flags.h"
#include "core/text.h"

namespace weft::weft_run {
namespace {

using train::UsageError;

constexpr const char* kHelp =
    R"(Starts a program as several ranks on this node, and with --nnodes as the part of this node in a larger job.
Usage: weft-run [flags] PROGRAM [arguments of the program]

  --nproc_per_node N [1]     ranks on this node: a number, gpu (one for each), cpu (one for each core), auto (gpu, else cpu)
  --nnodes N [1]             nodes; weft-run is started once on each
  --node_rank N [none]       the number of this node; none: nodes are numbered as they come to --rdzv_endpoint
  --rdzv_endpoint H:P [none] where the launchers of several nodes meet: a node's host name or address, and a free port
  --rdzv_backend NAME [none] c10d (with --rdzv_endpoint) or static (with --master_addr and --node_rank); none: what fits
  --rdzv_id NAME [none]      the name of this job, the same on all nodes
  --master_addr HOST [none]  node 0; its ranks get MASTER_ADDR from here
  --master_port PORT [none]  where rank 0 listens; none: a free one, or 29500 with --master_addr
  --standalone [off]         one node, whatever else is said about meeting
  --max_restarts N [0]       when a rank fails, all are started again, at most N times
  --log_dir FOLDER [none]    each rank writes to FOLDER/rank_N.log instead of the launcher's output
  --grace SECONDS [10]       between SIGTERM and SIGKILL for the ranks that are left when one fails
  --start_timeout S [300]    seconds that the launchers wait for each other
As accelerate launch it takes --num_machines, --machine_rank, --main_process_ip, --main_process_port, --num_processes (of all
machines), --mixed_precision (for programs that look at ACCELERATE_MIXED_PRECISION), --multi_gpu, and
  --config_file FILE [none]  the same as YAML; flags win
Flags may be written with - for _. What a program would do without doing it says its own --dry-run.

Examples:
  weft-run --nproc_per_node 2 train_image --data shapes
  weft-run --nnodes 2 --nproc_per_node 4 --rdzv_endpoint gpu1:29401 train_image --data cifar100:DIR    # on each node
)";

const std::vector<std::string>& known_flags() {
  static const std::vector<std::string> names{
      "nproc-per-node",  "nnodes",       "node-rank",       "rdzv-endpoint",     "rdzv-backend",
      "rdzv-id",         "master-addr",  "master-port",     "standalone",        "max-restarts",
      "log-dir",         "grace",        "start-timeout",   "no-python",         "help",
      "num-machines",    "machine-rank", "main-process-ip", "main-process-port", "num-processes",
      "mixed-precision", "multi-gpu",    "config-file"};
  return names;
}

int parse_count(const std::string& flag, const std::string& text, int least, int most) {
  const int64_t value = support::parse_integer("--" + flag, text);
  if (value < least || value > most)
    throw UsageError(str("--", flag, ": expected ", least, " to ", most, ", got ", value));
  return static_cast<int>(value);
}

/// The flags before the program, and the program with its arguments.
std::map<std::string, std::string> split(const std::vector<std::string>& arguments, std::vector<std::string>& command) {
  std::map<std::string, std::string> flags;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i].starts_with("-"); ++i) {
    if (arguments[i] == "--") {
      ++i;
      break;
    }
    const size_t equals = std::min(arguments[i].find('='), arguments[i].size());
    std::string name = arguments[i].substr(0, equals);
    name.erase(0, name.find_first_not_of('-'));
    std::replace(name.begin(), name.end(), '_', '-');
    if (name == "h") name = "help";
    if (std::find(known_flags().begin(), known_flags().end(), name) == known_flags().end())
      throw UsageError("unknown flag '" + printable(arguments[i].substr(0, equals)) + "'." +
                       suggestion(name, known_flags()));
    const bool is_switch = name == "standalone" || name == "no-python" || name == "multi-gpu" || name == "help";
    if (equals < arguments[i].size())
      flags[name] = arguments[i].substr(equals + 1);
    else if (is_switch)
      flags[name] = "true";
    else if (++i < arguments.size())
      flags[name] = arguments[i];
    else
      throw UsageError("--" + name + ": expected a value");
  }
  command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(std::min(i, arguments.size())), arguments.end());
  return flags;
}

/// Translates the flags of accelerate and of its file to torchrun's; errors about values show accelerate's names.
void translate(std::map<std::string, std::string>& flags) {
  support::AccelerateConfig file;
  const bool has_file = flags.contains("config-file");
  if (has_file) file = support::read_accelerate_config(flags["config-file"]);
  const auto take = [&](const char* own, const char* name, const std::string& in_file) {
    const std::string value = flags.contains(name) ? flags[name] : in_file;
    if (!value.empty() && !flags.contains(own)) flags[own] = value;
  };
  const auto number = [](int64_t value, int64_t least) { return value >= least ? std::to_string(value) : ""; };
  take("nnodes", "num-machines", number(file.num_machines, 1));
  take("node-rank", "machine-rank", number(file.machine_rank, 0));
  take("master-addr", "main-process-ip", file.main_process_ip);
  take("master-port", "main-process-port", number(file.main_process_port, 1));
  take("mixed-precision", "mixed-precision", file.mixed_precision);
  if (flags.contains("num-processes"))
    file.num_processes = parse_count("num-processes", flags["num-processes"], 1, 1 << 20);
  if (file.num_processes == 0) return;
  file.num_machines = flags.contains("nnodes") ? parse_count("num-machines", flags["nnodes"], 1, 65536) : 1;
  take("nproc-per-node", "", std::to_string(file.processes_per_machine()));
}

/// Turns parse errors of other modules into usage errors.
template <class Function>
auto usage(Function&& function) {
  try {
    return function();
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

void check_meeting(const Options& options, const std::string& backend) {
  if (backend != "c10d" && backend != "static")
    throw UsageError("--rdzv-backend: expected c10d or static, got '" + printable(backend) +
                     "': launchers meet at a store of their own. Give --rdzv-backend c10d --rdzv-endpoint HOST:PORT");
  if (options.node_rank.value_or(0) >= options.nodes)
    throw UsageError(str("--node-rank: expected 0 to ", options.nodes - 1, ", got ", *options.node_rank));
  if (options.nodes == 1) return;
  if (!options.meeting)
    throw UsageError(
        str("--nnodes ", options.nodes,
            ": expected --rdzv-endpoint HOST:PORT (or --master-addr HOST --node-rank N), where the nodes meet"));
  if (options.meeting->port == 0) throw UsageError("--rdzv-endpoint: expected HOST:PORT, got no port");
  if (backend == "static" && !options.node_rank)
    throw UsageError("--rdzv-backend static: expected --node-rank, 0 to " + std::to_string(options.nodes - 1) +
                     ", on each node");
}

}  // namespace

std::optional<Options> parse_options(const std::vector<std::string>& arguments) {
  Options options;
  std::map<std::string, std::string> flags = split(arguments, options.command);
  const auto has = [&](const char* name) { return flags.contains(name); };
  if (has("help")) {
    std::cout << kHelp;
    return std::nullopt;
  }
  translate(flags);
  if (options.command.empty())
    throw UsageError("expected a program to run, as in: weft-run --nproc_per_node 2 ./train");
  if (has("nproc-per-node")) options.ranks_per_node = flags["nproc-per-node"];
  if (has("nnodes") && flags["nnodes"].find(':') != std::string::npos)
    throw UsageError("--nnodes: expected one number, got '" + printable(flags["nnodes"]) +
                     "': jobs do not grow or shrink here");
  if (has("nnodes")) options.nodes = parse_count("nnodes", flags["nnodes"], 1, 65536);
  if (has("node-rank")) options.node_rank = parse_count("node-rank", flags["node-rank"], 0, 65535);
  if (has("mixed-precision")) options.mixed_precision = flags["mixed-precision"];
  if (has("rdzv-id")) options.run = flags["rdzv-id"];
  if (has("max-restarts")) options.max_restarts = parse_count("max-restarts", flags["max-restarts"], 0, 1'000'000);
  if (has("log-dir")) options.log_folder = flags["log-dir"];
  if (has("grace")) options.grace = parse_count("grace", flags["grace"], 0, 86400);
  if (has("start-timeout")) options.start_timeout = parse_count("start-timeout", flags["start-timeout"], 1, 604'800);

  usage([&] {
    if (has("master-addr")) options.master = dist::parse_address("--master-addr", flags["master-addr"]);
    if (has("master-port")) {
      if (!options.master) options.master.emplace();
      options.master->port = dist::parse_port("--master-port", flags["master-port"]);
    }
    const bool zero = has("rdzv-endpoint") && flags["rdzv-endpoint"].ends_with(":0");  // torchrun's `localhost:0`
    if (has("rdzv-endpoint"))
      options.meeting = dist::parse_address(
          "--rdzv-endpoint",
          zero ? flags["rdzv-endpoint"].substr(0, flags["rdzv-endpoint"].size() - 2) : flags["rdzv-endpoint"]);
    return 0;
  });
  if (!options.meeting && options.master && !options.master->host.empty()) {
    options.meeting = options.master;
    if (options.meeting->port == 0) options.meeting->port = 29500;
  }
  check_meeting(options, has("rdzv-backend") ? flags["rdzv-backend"] : has("rdzv-endpoint") ? "c10d" : "static");
  if (has("standalone") && options.nodes > 1)
    throw UsageError("--standalone: expected one node, got --nnodes " + std::to_string(options.nodes));
  return options;
}

int count_ranks(const std::string& text, int gpus, int cores) {
  if (text == "gpu" && gpus == 0) throw UsageError("--nproc-per-node gpu: this node has no GPU. Give a number, or cpu");
  if (text == "gpu") return gpus;
  if (text == "cpu") return cores;
  if (text == "auto") return gpus > 0 ? gpus : cores;
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(text) == 0)
    throw UsageError("--nproc-per-node: expected a number of 1 or more, auto, gpu or cpu, got '" + printable(text) +
                     "'");
  return std::stoi(text);
}

}  // namespace weft::weft_run
