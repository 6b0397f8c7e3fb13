// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_run/options.h"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "apps/support/accelerate.h"
#include "apps/support/flags.h"
#include "core/text.h"

namespace weft::weft_run {
namespace {

using train::UsageError;

constexpr uint16_t kMeetingPort = 29400;  // torchrun's, of its backend c10d

constexpr const char* kHelp =
    R"(Starts a program as several ranks on this node, and with --nnodes as the part of this node in a larger job.
Usage: weft-run [flags] PROGRAM [arguments of the program]

  --nproc_per_node N [1]     ranks on this node: a number, gpu (one for each), cpu (one for each core), auto (gpu, else cpu)
  --nnodes N [1]             nodes; weft-run is started once on each
  --node_rank N [none]       the number of this node; none: nodes are numbered as they come to --rdzv_endpoint
  --rdzv_endpoint H:P [none] where the launchers of several nodes meet: a node's host name or address, and a free port (29400)
  --rdzv_backend NAME [none] c10d (with --rdzv_endpoint) or static (with --master_addr and --node_rank); none: what fits
  --rdzv_id NAME [none]      the name of this job, the same on all nodes
  --rdzv_conf NAME=S [none]  timeout=S or join_timeout=S is --start_timeout S
  --master_addr HOST [none]  node 0; its ranks get MASTER_ADDR from here
  --master_port PORT [none]  where rank 0 listens; none: a free one, or 29500 with --master_addr
  --standalone [off]         one node, whatever else is said about meeting
  --max_restarts N [0]       when a rank fails, all are started again, at most N times
  --log_dir FOLDER [none]    each rank writes to FOLDER/rank_N.log instead of the launcher's output
  --explain FOLDER [none]    starts nothing: reads the flight records of all ranks (WEFT_FLIGHT_RECORDS) and says what differs
  --role NAME [default]      ROLE_NAME of the ranks
  --grace SECONDS [10]       between SIGTERM and SIGKILL for the ranks that are left when one fails (or --shutdown_timeout)
  --start_timeout S [300]    seconds that the launchers wait for each other
As accelerate launch it takes --num_machines, --machine_rank, --main_process_ip, --main_process_port, --num_processes (of all
machines), --mixed_precision (for programs that look at ACCELERATE_MIXED_PRECISION), --gpu_ids, --cpu, --multi_gpu,
--num_cpu_threads_per_process, and
  --config_file FILE [none]  the same as YAML or JSON; flags win
Other flags of both are passed over with a line, or refused with what to write instead. Flags may be written with - for _;
torchrun's may be variables, PET_NNODES=2. What a program would do without doing it says its own --dry-run.

Examples:
  weft-run --nproc_per_node 2 train_image --data shapes
  weft-run --nnodes 2 --nproc_per_node 4 --rdzv_endpoint gpu1:29401 train_image --data cifar100:DIR    # on each node
)";

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// A flag and who else has it. PyTorch's launcher also reads each of its flags from a variable, PET_NNODES and so on.
struct Flag {
  enum class Owner { weft, torchrun, accelerate };
  enum class Kind { value, on, passed_over, passed_over_on, refused };  ///< `on`: no value follows
  std::string name;
  Owner owner;
  Kind kind;
  const char* why;  ///< it is passed over; or, of a refused one, the cure
};

/// Flags that differ in their names alone.
struct FlagsAlike {
  const char* names;
  Flag::Owner owner;
  Flag::Kind kind;
  const char* why = "";
};

using Owner = Flag::Owner;
using Kind = Flag::Kind;

constexpr const char* kOutput = "without --log-dir the ranks share the launcher's output, with it each writes a file";
constexpr const char* kOnlyPython = "it is for Python alone";
constexpr const char* kShards = "sharding is the program's choice: give it --parallel fsdp";
constexpr const char* kProgram = "it is the program's choice: give it its own flag";
constexpr const char* kDevices = "ranks use GPUs of NVIDIA, or the CPU (--cpu). Leave it out";

constexpr FlagsAlike kFlagsAlike[] = {
    {"nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf", Owner::torchrun, Kind::value},
    {"standalone", Owner::torchrun, Kind::on},
    {"max-restarts role", Owner::torchrun, Kind::value},
    {"no-python", Owner::torchrun, Kind::on},
    {"log-dir", Owner::torchrun, Kind::value},
    {"explain", Owner::weft, Kind::value},
    {"node-rank master-addr master-port shutdown-timeout", Owner::torchrun, Kind::value},
    {"monitor-interval", Owner::torchrun, Kind::passed_over, "the end of a rank is seen at once"},
    {"start-method event-log-handler logs-specs", Owner::torchrun, Kind::passed_over, kOnlyPython},
    {"use-env", Owner::torchrun, Kind::passed_over_on, "ranks always get their variables"},
    {"redirects tee", Owner::torchrun, Kind::passed_over, kOutput},
    {"log-line-prefix-template", Owner::torchrun, Kind::passed_over, "lines pass unchanged"},
    {"local-ranks-filter", Owner::torchrun, Kind::passed_over, "all ranks' lines are shown"},
    {"duplicate-stdout-filters duplicate-stderr-filters", Owner::torchrun, Kind::passed_over,
     "all lines are shown once"},
    {"local-addr", Owner::torchrun, Kind::passed_over,
     "a node finds its own address; WEFT_SOCKET_IFNAME names a network interface"},
    {"numa-binding", Owner::torchrun, Kind::passed_over,
     "ranks run on all cores; numactl before the program binds them"},
    {"signals-to-handle", Owner::torchrun, Kind::passed_over,
     "SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 are forwarded"},
    {"virtual-local-rank", Owner::torchrun, Kind::passed_over_on, "a rank takes the GPU with the number LOCAL_RANK"},
    {"module", Owner::torchrun, Kind::refused, "a program is started, no module of Python: write python3 -m MODULE"},
    {"run-path", Owner::torchrun, Kind::refused, "a program is started, no script of Python: write python3 SCRIPT"},
    {"print-completion", Owner::torchrun, Kind::refused, "--help lists the flags"},
    {"grace start-timeout", Owner::weft, Kind::value},
    {"help version", Owner::weft, Kind::on},
    {"num-machines machine-rank main-process-ip main-process-port num-processes mixed-precision config-file gpu-ids "
     "num-cpu-threads-per-process",
     Owner::accelerate, Kind::value},
    {"cpu multi-gpu same-network", Owner::accelerate, Kind::on},
    {"quiet", Owner::accelerate, Kind::passed_over_on, "one line names the rank that failed"},
    {"debug", Owner::accelerate, Kind::passed_over_on, "collectives are always compared between ranks"},
    {"enable-cpu-affinity", Owner::accelerate, Kind::passed_over_on,
     "ranks run on all cores; numactl before the program binds them"},
    {"main-training-function", Owner::accelerate, Kind::passed_over, kOnlyPython},
    {"downcast-bf16", Owner::accelerate, Kind::passed_over_on, "it is for TPUs alone"},
    {"dynamo-backend dynamo-mode", Owner::accelerate, Kind::passed_over, kOnlyPython},
    {"dynamo-use-fullgraph dynamo-use-dynamic dynamo-use-regional-compilation", Owner::accelerate, Kind::passed_over_on,
     kOnlyPython},
    {"use-fsdp use-deepspeed use-megatron-lm use-parallelism-config zero-stage", Owner::accelerate, Kind::refused,
     kShards},
    {"gradient-accumulation-steps gradient-clipping", Owner::accelerate, Kind::refused, kProgram},
    {"tpu ipex use-xpu", Owner::accelerate, Kind::refused, kDevices},
    {"mpirun-hostfile", Owner::accelerate, Kind::refused, "start mpirun itself: mpirun --hostfile FILE PROGRAM"},
};

const std::vector<Flag> kFlags = [] {
  std::vector<Flag> flags;
  for (const auto& [names, owner, kind, why] : kFlagsAlike)
    for (const std::string& name : words(names)) flags.push_back({name, owner, kind, why});
  return flags;
}();

/// Families of accelerate's flags, all refused.
constexpr std::pair<const char*, const char*> kFamilies[] = {
    {"fsdp-", kShards},    {"deepspeed-", kShards}, {"megatron-lm-", kShards}, {"parallelism-config-", kShards},
    {"offload-", kShards}, {"zero3-", kShards},     {"tpu-", kDevices},        {"fp8-", kProgram},
};

const Flag* find_flag(const std::string& name) {
  const auto found = std::ranges::find(kFlags, name, &Flag::name);
  return found == kFlags.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_unknown(const std::string& written, const std::string& name) {
  for (const auto& [prefix, cure] : kFamilies)
    if (name.starts_with(prefix)) throw UsageError("--" + printable(name) + ": " + cure);
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) names.push_back(flag.name);
  throw UsageError("unknown flag '" + printable(written) + "'." + suggestion(name, names));
}

int parse_count(const std::string& flag, const std::string& text, int least, int most) {
  const int64_t value = support::parse_integer("--" + flag, text);
  if (value < least || value > most)
    throw UsageError(str("--", flag, ": expected ", least, " to ", most, ", got ", value));
  return static_cast<int>(value);
}

/// The name and the value of `--flag=value`, `-r3` and the like; torchrun's and accelerate's short names in full.
std::pair<std::string, std::optional<std::string>> name_and_value(const std::string& argument) {
  static const std::map<std::string, std::string> in_full{
      {"h", "help"}, {"m", "module"}, {"r", "redirects"}, {"t", "tee"}, {"q", "quiet"}};
  const bool joined = argument.size() > 2 && (argument.starts_with("-r") || argument.starts_with("-t")) &&
                      std::isdigit(static_cast<unsigned char>(argument[2]));
  if (joined) return {in_full.at(argument.substr(1, 1)), argument.substr(2)};
  const size_t equals = std::min(argument.find('='), argument.size());
  std::string name = argument.substr(0, equals);
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::replace(name.begin(), name.end(), '_', '-');
  if (const auto found = in_full.find(name); found != in_full.end()) name = found->second;
  if (equals == argument.size()) return {name, std::nullopt};
  return {name, argument.substr(equals + 1)};
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
    const auto [name, value] = name_and_value(arguments[i]);
    const Flag* const flag = find_flag(name);
    if (flag == nullptr) refuse_unknown(arguments[i].substr(0, arguments[i].find('=')), name);
    if (flag->kind == Kind::refused) throw UsageError("--" + name + ": " + flag->why);
    const bool is_switch = flag->kind == Kind::on || flag->kind == Kind::passed_over_on;
    if (is_switch && value) throw UsageError("--" + name + ": expected no value, got '" + printable(*value) + "'");
    if (value || is_switch)
      flags[name] = value.value_or("true");
    else if (++i < arguments.size())
      flags[name] = arguments[i];
    else
      throw UsageError("--" + name + ": expected a value");
  }
  command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(std::min(i, arguments.size())), arguments.end());
  return flags;
}

/// Adds the flags that PET_… variables give, as torchrun does; the command line wins. One line names each.
void add_variables(const dist::EnvironmentVariables& variables, std::map<std::string, std::string>& flags,
                   std::vector<std::string>& notes) {
  for (const Flag& flag : kFlags) {
    if (flag.owner != Owner::torchrun || flags.contains(flag.name)) continue;
    std::string name = str("PET_", flag.name);
    for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) continue;
    const std::string& value = found->second;
    const bool is_switch =
        flag.kind != Kind::value && flag.kind != Kind::passed_over && flag.name != "print-completion";
    if (is_switch && value == "0") continue;
    if (flag.kind == Kind::refused) throw UsageError(name + ": " + flag.why);
    flags[flag.name] = value;
    notes.push_back(str("--", flag.name, is_switch ? "" : " " + printable(value), ", from ", name));
  }
}

/// One line for each flag without a meaning here.
void pass_over(const std::map<std::string, std::string>& flags, std::vector<std::string>& notes) {
  for (const Flag& flag : kFlags)
    if ((flag.kind == Kind::passed_over || flag.kind == Kind::passed_over_on) && flags.contains(flag.name))
      notes.push_back(str("--", flag.name, " is passed over: ", flag.why));
}

/// The number of nodes of torchrun's LEAST:MOST, where both are the same.
std::string one_number(const std::string& nodes) {
  const std::string least = nodes.substr(0, nodes.find(':'));
  if (nodes != least && nodes != least + ':' + least)
    throw UsageError("--nnodes: expected one number, got '" + printable(nodes) + "': jobs do not grow or shrink here");
  return least;
}

/// Torchrun's --rdzv_conf NAME=VALUE,…: how long the launchers wait for each other, and settings of torchrun's own
/// stores, which are passed over.
void read_meeting_settings(const std::string& text, Options& options) {
  static const std::vector<std::string> waits{"timeout", "join_timeout"};
  static const std::vector<std::string> others = words(
      "last_call_timeout close_timeout heartbeat_timeout keep_alive_interval keep_alive_max_attempt read_timeout "
      "cas_backoff_max_seconds is_host use_libuv rank");
  std::istringstream in(text);
  for (std::string setting; std::getline(in, setting, ',');) {
    const std::string name = setting.substr(0, setting.find('='));
    if (name.size() + 1 >= setting.size())
      throw UsageError("--rdzv-conf: expected NAME=VALUE,…, got '" + printable(setting) + "'");
    const std::string value = setting.substr(name.size() + 1);
    if (std::find(waits.begin(), waits.end(), name) != waits.end()) {
      options.start_timeout = parse_count("rdzv-conf " + name, value, 1, 604'800);
    } else if (std::find(others.begin(), others.end(), name) != others.end()) {
      options.notes.push_back("--rdzv-conf " + name + " is passed over: launchers meet at a store of their own");
    } else if (name != "store_type" || value != "tcp") {
      std::vector<std::string> names = waits;
      names.insert(names.end(), others.begin(), others.end());
      throw UsageError(name == "store_type"
                           ? "--rdzv-conf store_type: expected tcp, got '" + printable(value) + "'"
                           : "--rdzv-conf: unknown setting '" + printable(name) + "'." + suggestion(name, names));
    }
  }
}

/// Numbers of GPUs, or their names `GPU-…` and `MIG-…`, as CUDA_VISIBLE_DEVICES takes them.
void check_gpus(const std::string& list) {
  std::set<std::string> seen;
  std::istringstream in(list);
  for (std::string one; std::getline(in, one, ',');) {
    const bool is_number = !one.empty() && one.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number && !one.starts_with("GPU-") && !one.starts_with("MIG-"))
      throw UsageError("--gpu-ids: expected numbers such as 0,1 or all, got '" + printable(list) + "'");
    if (!seen.insert(one).second) throw UsageError("--gpu-ids: expected each GPU once, got '" + printable(list) + "'");
  }
}

/// Translates the flags of accelerate and of its file to torchrun's; errors about values show accelerate's names.
void translate(std::map<std::string, std::string>& flags, Options& options) {
  support::AccelerateConfig file;
  if (flags.contains("config-file")) file = support::read_accelerate_config(flags["config-file"]);
  options.notes.insert(options.notes.end(), file.notes.begin(), file.notes.end());
  // Machines with a common endpoint share a file, with the same machine_rank for all.
  const bool numbers_itself =
      flags.contains("rdzv-backend") ? flags["rdzv-backend"] == "c10d" : file.rdzv_backend == "c10d";
  if (numbers_itself) file.machine_rank = -1;
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
  if (file.rdzv_backend != "static") take("rdzv-backend", "", file.rdzv_backend);
  take("gpu-ids", "gpu-ids", file.gpu_ids);
  if (const std::string word = flags["mixed-precision"];
      !word.empty() && word != "no" && word != "bf16" && word != "fp16")
    throw UsageError("--mixed-precision: expected no, bf16 or fp16, got '" + printable(word) + "'");
  if (flags["gpu-ids"] == "all") flags["gpu-ids"].clear();
  check_gpus(flags["gpu-ids"]);
  if (!flags["gpu-ids"].empty()) options.gpus = flags["gpu-ids"];
  if (file.use_cpu || flags.contains("cpu")) options.gpus = "";
  if (flags.contains("num-processes"))
    file.num_processes = parse_count("num-processes", flags["num-processes"], 1, 1 << 20);
  if (file.num_processes == 0) return;
  file.num_machines = flags.contains("nnodes") ? parse_count("num-machines", flags["nnodes"], 1, 65536) : 1;
  const std::string each = std::to_string(file.processes_per_machine());
  if (flags.contains("num-processes") && flags.contains("nproc-per-node") && flags["nproc-per-node"] != each)
    throw UsageError(str("--num-processes ", file.num_processes, ": expected --nproc-per-node ", each,
                         " beside it, got ", printable(flags["nproc-per-node"])));
  take("nproc-per-node", "", each);
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

std::optional<Options> parse_options(const std::vector<std::string>& arguments,
                                     const dist::EnvironmentVariables& variables) {
  Options options;
  std::map<std::string, std::string> flags = split(arguments, options.command);
  const auto has = [&](const char* name) { return flags.contains(name); };
  if (has("help") || has("version")) {
    std::cout << (has("help") ? kHelp : support::version_line("weft-run") + '\n');
    return std::nullopt;
  }
  if (has("explain")) {
    if (flags.size() > 1 || !options.command.empty())
      throw UsageError("--explain FOLDER: expected no other flag and no program: it starts nothing");
    options.explain = flags["explain"];
    return options;
  }
  if (options.command.empty())
    throw UsageError("expected a program to run, as in: weft-run --nproc_per_node 2 ./train");
  add_variables(variables, flags, options.notes);
  if (has("nnodes")) flags["nnodes"] = one_number(flags["nnodes"]);
  pass_over(flags, options.notes);
  translate(flags, options);
  if (has("standalone"))  // as torchrun
    for (const char* name : {"rdzv-endpoint", "rdzv-backend", "rdzv-conf"})
      if (flags.erase(name) > 0) options.notes.push_back(str("--", name, " is passed over: --standalone meets nobody"));
  if (has("nproc-per-node")) options.ranks_per_node = flags["nproc-per-node"];
  if (has("nnodes")) options.nodes = parse_count("nnodes", flags["nnodes"], 1, 65536);
  if (has("node-rank")) options.node_rank = parse_count("node-rank", flags["node-rank"], 0, 65535);
  if (has("mixed-precision")) options.mixed_precision = flags["mixed-precision"];
  if (has("rdzv-id")) options.run = flags["rdzv-id"];
  if (has("max-restarts")) options.max_restarts = parse_count("max-restarts", flags["max-restarts"], 0, 1'000'000);
  if (has("log-dir")) options.log_folder = flags["log-dir"];
  if (has("role")) options.role = flags["role"];
  if (has("shutdown-timeout")) options.grace = parse_count("shutdown-timeout", flags["shutdown-timeout"], 0, 86400);
  if (has("num-cpu-threads-per-process"))
    options.threads = parse_count("num-cpu-threads-per-process", flags["num-cpu-threads-per-process"], 1, 65536);
  if (has("rdzv-conf")) read_meeting_settings(flags["rdzv-conf"], options);
  if (has("grace")) options.grace = parse_count("grace", flags["grace"], 0, 86400);
  if (has("start-timeout")) options.start_timeout = parse_count("start-timeout", flags["start-timeout"], 1, 604'800);

  try {
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
    const bool is_static = has("rdzv-backend") && flags["rdzv-backend"] == "static";
    if (options.meeting && options.meeting->port == 0 && !zero && !is_static) options.meeting->port = kMeetingPort;
  } catch (const Error& error) {  // the address is malformed
    throw UsageError(error.what());
  }
  if (!options.meeting && options.master && !options.master->host.empty()) {
    options.meeting = options.master;
    if (options.meeting->port == 0) options.meeting->port = 29500;
  }
  if (has("standalone") && options.nodes > 1)
    throw UsageError("--standalone: expected one node, got --nnodes " + std::to_string(options.nodes));
  check_meeting(options, has("rdzv-backend") ? flags["rdzv-backend"] : has("rdzv-endpoint") ? "c10d" : "static");
  return options;
}

int count_ranks(const std::string& text, int gpus, int cores) {
  if (text == "gpu" && gpus == 0) throw UsageError("--nproc-per-node gpu: this node has no GPU. Give a number, or cpu");
  if (text == "gpu") return gpus;
  if (text == "cpu") return cores;
  if (text == "auto") return gpus > 0 ? gpus : cores;
  constexpr int kMost = 4096;
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || text.size() > 6 ||
      std::stoi(text) < 1 || std::stoi(text) > kMost)
    throw UsageError(str("--nproc-per-node: expected a number from 1 to ", kMost, ", auto, gpu or cpu, got '",
                         printable(text), "'"));
  return std::stoi(text);
}

}  // namespace weft::weft_run
