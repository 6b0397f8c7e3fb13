// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/launch_environment.h"

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

constexpr size_t kMaxHosts = 65'536, kMaxText = 1 << 20;

struct Parser {
  std::string_view list;

  [[noreturn]] void refuse(std::string_view why) const {
    fail("node list: expected names such as jwb[0021-0024,0030], got '", printable(list.substr(0, 200)), "': ", why);
  }

  /// At most 18 digits, so that the value fits.
  uint64_t number(std::string_view digits) const {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || digits.size() > 18 || error != std::errc{} || end != digits.data() + digits.size())
      refuse(str("'", printable(digits.substr(0, 40)), "' is no number"));
    return value;
  }

  /// Appends the numbers of `0021-0024,0030`. A range has the width of its first number.
  void expand_bracket(std::string_view inside, std::vector<std::string>& pieces) const {
    while (true) {
      const size_t comma = inside.find(',');
      const std::string_view part = inside.substr(0, comma);
      const size_t dash = part.find('-');
      const std::string_view low = part.substr(0, dash);
      const uint64_t first = number(low);
      const uint64_t last = dash == part.npos ? first : number(part.substr(dash + 1));
      if (last < first) refuse(str("the range ", part, " runs backwards"));
      if (last - first >= kMaxHosts - pieces.size()) refuse(str("more than ", kMaxHosts, " hosts"));
      for (uint64_t value = first; value <= last; ++value) {
        std::string digits = std::to_string(value);
        if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
        pieces.push_back(std::move(digits));
      }
      if (comma == inside.npos) return;
      inside.remove_prefix(comma + 1);
    }
  }

  /// `rack[1-2]n[01-04]` becomes its eight names.
  std::vector<std::string> expand_name(std::string_view name) const {
    std::vector<std::string> hosts{""};
    while (!name.empty()) {
      std::vector<std::string> pieces;
      if (name.front() == '[') {
        const size_t close = name.find(']');
        if (close == name.npos) refuse("a bracket is not closed");
        expand_bracket(name.substr(1, close - 1), pieces);
        name.remove_prefix(close + 1);
      } else {
        const size_t open = std::min(name.find('['), name.size());
        pieces.emplace_back(name.substr(0, open));
        for (const char c : pieces.back())
          if (c <= ' ' || c > '~' || c == ']') refuse(str("'", printable(std::string(1, c)), "' in a name"));
        name.remove_prefix(open);
      }
      if (hosts.size() * pieces.size() > kMaxHosts) refuse(str("more than ", kMaxHosts, " hosts"));
      std::vector<std::string> longer;
      longer.reserve(hosts.size() * pieces.size());
      for (const std::string& host : hosts)
        for (const std::string& piece : pieces) longer.push_back(host + piece);
      hosts = std::move(longer);
    }
    return hosts;
  }
};

}  // namespace

std::vector<std::string> parse_node_list(std::string_view list) {
  const Parser parser{list};
  if (list.empty()) parser.refuse("it is empty");
  if (list.size() > kMaxText) parser.refuse("it is longer than 1 MiB");
  std::vector<std::string> hosts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[' && ++depth > 1) parser.refuse("a bracket in a bracket");
    if (i < list.size() && list[i] == ']' && --depth < 0) parser.refuse("a bracket is not opened");
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    const std::string_view name = list.substr(begin, i - begin);
    if (name.empty()) parser.refuse("a name is empty");
    for (std::string& host : parser.expand_name(name)) hosts.push_back(std::move(host));
    if (hosts.size() > kMaxHosts) parser.refuse(str("more than ", kMaxHosts, " hosts"));
    begin = i + 1;
  }
  return hosts;
}

std::string fast_network_name(const std::string& host, const std::string& system) {
  if (system != "juwels" && system != "juwelsbooster" && system != "jureca") return host;
  std::string name = host;
  return name.insert(std::min(name.find('.'), name.size()), "i");
}

namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr uint16_t kUsualPort = 29500;  // torchrun's

/// Reads variables with checks; empty ones count as not set.
struct Reader {
  const EnvironmentVariables& variables;

  std::string text(const std::string& name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  }

  std::optional<int> integer(const std::string& name) const {
    const std::string value = text(name);
    if (value.empty()) return std::nullopt;
    int number = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    WEFT_CHECK(error == std::errc{} && end == value.data() + value.size() && number >= 0 && number <= kMaxRanks,
               "launch environment: ", name, ": expected a whole number, 0 to ", kMaxRanks, ", got '",
               printable(value.substr(0, 100)), "'");
    return number;
  }

  std::string first_text(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (std::string value = text(name); !value.empty()) return value;
    return "";
  }
};

/// Rank and size from a pair of variables; nothing if neither is set.
bool read_pair(const Reader& read, const char* rank_name, const char* size_name, LaunchEnvironment& place) {
  const std::optional<int> rank = read.integer(rank_name), size = read.integer(size_name);
  if (!rank && !size) return false;
  WEFT_CHECK(rank && size, "launch environment: ", rank ? rank_name : size_name, '=', rank ? *rank : *size,
             " is set, but ", rank ? size_name : rank_name, " is not. Set both, or neither");
  WEFT_CHECK(*rank < *size, "launch environment: ", rank_name, '=', *rank, " contradicts ", size_name, '=', *size,
             ": ranks run from 0 to size - 1");
  place.rank = *rank;
  place.size = *size;
  return true;
}

void read_local_pair(const Reader& read, const char* rank_name, const char* size_name, LaunchEnvironment& place) {
  place.local_rank = read.integer(rank_name).value_or(-1);
  place.local_size = read.integer(size_name).value_or(0);
  WEFT_CHECK(place.local_size == 0 || place.local_rank < place.local_size, "launch environment: ", rank_name, '=',
             place.local_rank, " contradicts ", size_name, '=', place.local_size);
  WEFT_CHECK(place.local_size <= place.size, "launch environment: ", size_name, '=', place.local_size,
             " contradicts the ", place.size, " ranks of the job");
  if (place.local_rank < 0 && place.size == 1) place.local_rank = 0;
  if (place.local_size == 0 && place.size == 1) place.local_size = 1;
  const bool whole = place.local_size > 0 && place.size % place.local_size == 0;
  place.nodes = whole ? place.size / place.local_size : 0;
}

/// Ranks on node number `node` by `SLURM_STEP_TASKS_PER_NODE`, as in `4(x2),3`; 0: unknown.
int tasks_on_node(std::string_view text, int node) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    int tasks = 0, times = 1;
    const char* const end = part.data() + part.size();
    const auto [at, error] = std::from_chars(part.data(), end, tasks);
    if (error != std::errc{}) return 0;
    if (at != end) {  // (xN)
      if (end - at < 4 || at[0] != '(' || at[1] != 'x' || end[-1] != ')') return 0;
      if (std::from_chars(at + 2, end - 1, times).ptr != end - 1) return 0;
    }
    if (node < times) return tasks;
    node -= times;
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return 0;
}

/// Whether this process was started by hand in the shell of `srun --ntasks N --pty bash`: the step has N tasks, and no
/// other task runs the program. Steps that are started in that shell have other numbers.
bool in_interactive_shell(const Reader& read, const std::string& step) {
  const std::string name = read.text("SLURM_JOB_NAME");  // srun names a job after its program
  const bool is_shell = name.ends_with("sh") &&
                        std::string_view("bash dash fish ksh tcsh zsh csh sh").find(name) != std::string_view::npos;
  return is_shell && step == "0" && !read.text("SLURM_PTY_PORT").empty();
}

/// A step of one or more tasks that srun started. The shells that Slurm itself starts are steps too, with numbers
/// near 2^32 (slurm.h: SLURM_BATCH_SCRIPT and below).
bool read_slurm(const Reader& read, LaunchEnvironment& place) {
  const std::string step = read.text("SLURM_STEP_ID").empty() ? read.text("SLURM_STEPID") : read.text("SLURM_STEP_ID");
  if (step.empty() || step.size() >= 10 || read.text("SLURM_STEP_NUM_TASKS").empty()) return false;
  if (in_interactive_shell(read, step)) return false;
  const int components = read.integer("SLURM_HET_SIZE").value_or(read.integer("SLURM_PACK_SIZE").value_or(1));
  const int tasks = read.integer("SLURM_STEP_NUM_TASKS").value_or(0),
            all = read.integer("SLURM_NTASKS").value_or(tasks);
  WEFT_CHECK(components <= 1 || all == tasks, "launch environment: this component of a heterogeneous Slurm job has ",
             tasks, " of the step's ", all,
             " tasks. Set RANK, WORLD_SIZE and MASTER_ADDR for each task, or start the ranks in one "
             "component: srun --het-group=0");
  if (!read_pair(read, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", place)) return false;
  place.launcher = "Slurm";
  place.slurm_tasks = place.size;
  place.local_rank = read.integer("SLURM_LOCALID").value_or(-1);
  place.nodes = read.integer("SLURM_STEP_NUM_NODES").value_or(0);
  place.local_size = tasks_on_node(read.text("SLURM_STEP_TASKS_PER_NODE"), read.integer("SLURM_NODEID").value_or(0));
  if (place.nodes == 1) place.local_size = place.size;
  place.job = "slurm " + read.text("SLURM_JOB_ID") + "." + step;
  return true;
}

/// A task that `flux run` started.
bool read_flux(const Reader& read, LaunchEnvironment& place) {
  if (!read.integer("FLUX_TASK_RANK") || !read_pair(read, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", place)) return false;
  place.launcher = "Flux";
  place.local_rank = read.integer("FLUX_TASK_LOCAL_ID").value_or(-1);
  place.nodes = read.integer("FLUX_JOB_NNODES").value_or(0);
  place.local_size = place.nodes == 1 ? place.size : 0;
  place.job = "flux " + read.text("FLUX_JOB_ID");
  return true;
}

/// Launchers that say everything in variables of their own.
bool read_named(const Reader& read, LaunchEnvironment& place) {
  struct LauncherNames {
    const char* launcher;
    bool is_mpi;
    const char *rank, *size, *local_rank, *local_size;
    std::initializer_list<const char*> job;
  };
  static const LauncherNames launchers[] = {
      {"Open MPI",
       true,
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
      {"Horovod",
       false,
       "HOROVOD_RANK",
       "HOROVOD_SIZE",
       "HOROVOD_LOCAL_RANK",
       "HOROVOD_LOCAL_SIZE",
       {"HOROVOD_GLOO_RENDEZVOUS_PORT"}},
      {"MVAPICH2",
       true,
       "MV2_COMM_WORLD_RANK",
       "MV2_COMM_WORLD_SIZE",
       "MV2_COMM_WORLD_LOCAL_RANK",
       "MV2_COMM_WORLD_LOCAL_SIZE",
       {"PMI_JOBID", "PMI_ID", "SLURM_JOB_ID"}},
  };
  for (const LauncherNames& names : launchers) {
    if (!read_pair(read, names.rank, names.size, place)) continue;
    place.launcher = names.launcher;
    read_local_pair(read, names.local_rank, names.local_size, place);
    place.job = (names.is_mpi ? "mpi " : "horovod ") + read.first_text(names.job);
    place.is_mpi_rank = names.is_mpi;
    return true;
  }
  return false;
}

bool read_pmi(const Reader& read, LaunchEnvironment& place) {
  const std::optional<int> pmix = read.integer("PMIX_RANK");
  const bool pmi = read.integer("PMI_RANK") || read.integer("PMI_SIZE");
  if (!pmix && !pmi) return false;
  const bool slurm = read_slurm(read, place), flux = !slurm && read_flux(read, place);
  LaunchEnvironment other;
  if (pmi) {
    read_pair(read, "PMI_RANK", "PMI_SIZE", other);
  } else {
    WEFT_CHECK(slurm || flux, "launch environment: PMIX_RANK=", *pmix,
               " is set, but no variable says how many ranks there are. Start with mpirun or srun, or set RANK and "
               "WORLD_SIZE");
    other.rank = *pmix;
    other.size = place.size;
  }
  WEFT_CHECK(!(slurm || flux) || (other.rank == place.rank && other.size == place.size),
             "launch environment: ", pmi ? "PMI" : "PMIx", " says rank ", other.rank, " of ", other.size, ", ",
             place.launcher, " says rank ", place.rank, " of ", place.size, ". Start the ranks by one launcher alone");
  if (!slurm && !flux) {
    place = other;
    place.job = "mpi " + read.first_text({"PMI_JOBID", "PMI_ID", "PALS_APID"});
    const bool pals = !read.text("PALS_LOCAL_RANKID").empty();  // HPE's and Cray's mpiexec
    read_local_pair(read, pals ? "PALS_LOCAL_RANKID" : "MPI_LOCALRANKID", pals ? "PALS_LOCAL_SIZE" : "MPI_LOCALNRANKS",
                    place);
  }
  place.launcher = pmi ? "PMI" : "PMIx";
  place.is_mpi_rank = true;
  return true;
}

LaunchEnvironment read_launcher(const Reader& read) {
  LaunchEnvironment place;
  if (read_named(read, place) || read_pmi(read, place) || read_flux(read, place) || read_slurm(read, place))
    return place;
  return {};
}

/// The rank and size of RANK and WORLD_SIZE; `outer`: those that the surrounding launcher has set.
LaunchEnvironment read_rank(const Reader& read, const LaunchEnvironment& outer) {
  LaunchEnvironment place;
  place.launcher = "RANK and WORLD_SIZE";
  read_pair(read, "RANK", "WORLD_SIZE", place);
  read_local_pair(read, "LOCAL_RANK", "LOCAL_WORLD_SIZE", place);
  place.nodes = read.integer("GROUP_WORLD_SIZE").value_or(place.nodes);
  place.restarts = read.integer("TORCHELASTIC_RESTART_COUNT").value_or(0);
  const std::string run = read.text("TORCHELASTIC_RUN_ID"), slurm = read.text("SLURM_JOB_ID");
  if (!run.empty()) place.job = "run " + run;
  if (run.empty() && !slurm.empty()) place.job = "slurm " + slurm;
  const bool below_agent = !run.empty() || !read.text("GROUP_RANK").empty();
  place.is_mpi_rank = outer.is_mpi_rank && !below_agent && outer.rank == place.rank && outer.size == place.size;
  return place;
}

/// If only RANK or WORLD_SIZE is set, it must agree with the launcher.
void check_repeated(const Reader& read, const LaunchEnvironment& place) {
  const std::optional<int> rank = read.integer("RANK"), size = read.integer("WORLD_SIZE");
  WEFT_CHECK(!rank || (place.launcher != "alone" && *rank == place.rank), "launch environment: RANK=", rank.value_or(0),
             " is set, but WORLD_SIZE is not",
             place.launcher == "alone" ? "" : ", and " + place.launcher + " says rank ",
             place.launcher == "alone" ? "" : std::to_string(place.rank), ". Set both, or neither");
  WEFT_CHECK(
      !size || *size == place.size, "launch environment: WORLD_SIZE=", size.value_or(0),
      " is set, but RANK is not, and ", place.launcher == "alone" ? "no launcher" : place.launcher,
      place.launcher == "alone" ? " says that there are others" : " says " + std::to_string(place.size) + " ranks",
      ". Set both, or neither");
}

/// 20480 … 28671, below Linux's client ports: the same for all ranks of a job.
uint16_t port_of_job(const std::string& job) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<uint16_t>(20480 + hash % 8192);
}

Address find_master(const Reader& read, const LaunchEnvironment& place) {
  Address master;
  if (const std::string said = read.text("MASTER_ADDR"); !said.empty()) master = parse_address("MASTER_ADDR", said);
  if (const std::string said = read.text("MASTER_PORT"); !said.empty()) master.port = parse_port("MASTER_PORT", said);
  if (place.size == 1) return master;
  const bool by_rank = place.launcher == "RANK and WORLD_SIZE";
  if (master.port == 0) master.port = by_rank ? kUsualPort : port_of_job(place.job);
  if (!master.host.empty()) return master;
  const std::string list = read.first_text({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (place.one_node())
    master.host = "127.0.0.1";
  else if (!list.empty())
    master.host = fast_network_name(parse_node_list(list).front(), read.text("SYSTEMNAME"));
  WEFT_CHECK(!by_rank || !master.host.empty(), "launch environment: RANK=", place.rank, " and WORLD_SIZE=", place.size,
             " are set, but MASTER_ADDR is not: set it to the host of rank 0 on all ranks");
  return master;
}

}  // namespace

EnvironmentVariables environment_variables() {
  EnvironmentVariables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const size_t equals = text.find('='); equals != text.npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

LaunchEnvironment read_launch_environment(const EnvironmentVariables& variables) {
  const Reader read{variables};
  const bool has_rank = !read.text("RANK").empty(), has_size = !read.text("WORLD_SIZE").empty();
  LaunchEnvironment place = has_rank && has_size ? LaunchEnvironment{} : read_launcher(read);
  if (has_rank && has_size) {
    LaunchEnvironment outer;
    try {
      outer = read_launcher(read);
    } catch (const Error&) {
      // With RANK and WORLD_SIZE the launcher's variables only tell whether this is an MPI rank; they may be
      // incomplete.
    }
    place = read_rank(read, outer);
  } else {
    check_repeated(read, place);
  }
  place.master = find_master(read, place);
  return place;
}

}  // namespace weft::dist
