// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/options.h"

#include <set>

#include "apps/support/flags.h"
#include "apps/weft_sweep/sweep_file.h"
#include "core/text.h"

namespace weft::weft_sweep {
namespace {

using train::UsageError;

constexpr const char* kPurpose =
    R"(Runs a program with many values of its flags and ranks the runs.

--grid NAME=V,V,… …      all combinations of these values
--random NAME=… …        combinations drawn at random: V,V,… or LOW..HIGH, log:LOW..HIGH, int:LOW..HIGH
--bayes NAME=… …         each chosen by Optuna from the values of those before

Each point has a folder below --out: {run} in the command stands for it (programs of Weft get it by their own flag when the
command does not say {run}), {NAME} for a value; values without a place become flags: --NAME=VALUE. Points that are done are
not run again: the same line goes on with a sweep that was stopped.
)";

/// The words of the command line by kind.
struct Words {
  std::vector<std::string> flags, grid, random, bayes, command;
  int kinds() const { return !grid.empty() + !random.empty() + !bayes.empty(); }
};

Words split(const std::vector<std::string>& arguments) {
  static const std::set<std::string> switches{"--dry-run", "--rank", "--slurm", "--help", "-h", "--version"};
  Words words;
  std::vector<std::string>* list = nullptr;  // list of --grid, --random or --bayes, whose values follow
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") {
      words.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    if (word == "--grid" || word == "--random" || word == "--bayes") {
      list = word == "--grid" ? &words.grid : word == "--random" ? &words.random : &words.bayes;
    } else if (word.starts_with("-") &&
               !(list != nullptr && word.find('=') != std::string::npos && !word.starts_with("--"))) {
      list = nullptr;
      words.flags.push_back(word);
      if (!switches.contains(word) && word.find('=') == std::string::npos && i + 1 < arguments.size())
        words.flags.push_back(arguments[++i]);
    } else if (list != nullptr) {
      list->push_back(word);
    } else {
      words.flags.push_back(word);  // Flags reports the error
    }
  }
  return words;
}

void check_names(const std::vector<Parameter>& parameters) {
  std::set<std::string> names{"run"};
  for (const Parameter& parameter : parameters)
    if (!names.insert(parameter.name).second)
      throw UsageError(parameter.name == "run" ? "run: expected another name, {run} is the folder of a run"
                                               : parameter.name + ": expected each flag once, got it twice");
}

}  // namespace

std::optional<Options> parse_options(const std::vector<std::string>& arguments) {
  Options o;
  std::string file;
  std::vector<std::string> from_file;  // the file's program
  const Words words = split(arguments);
  support::Flags flags("weft-sweep", kPurpose);
  flags.add("sweep", file, "read method, metric and parameters from this YAML file, of wandb's layout for sweeps");
  flags.add("trials", o.trials, "number of points of a random or Bayesian search", {1, 100'000});
  flags.add("seed", o.seed, "seed of a search: the same seed gives the same points", {.min = 0});
  flags.add("min-iter", o.min_iter,
            "stop runs early: after this many values of the metric, and eta, eta^2, … times as "
            "many, only the best go on (0: none is stopped)",
            {.min = 0});
  flags.add("eta", o.eta, "the best 1/eta of the runs that came so far go on", {.min = 2});
  flags.add("metric", o.metric, "metric that ranks the runs: a name of metrics.jsonl or TensorBoard");
  flags.add_choice("goal", o.goal, {"min", "max"}, "whether the smallest or the largest value is best");
  flags.add_choice("by", o.by, {"last", "best"}, "which value of a run counts");
  flags.add("out", o.out, "folder of the sweep");
  flags.add("jobs", o.jobs, "number of runs at a time", {1, 1024});
  flags.add("gpus", o.gpus, "comma-separated GPU numbers, divided among the runs: 0,1,2,3 with --jobs 4 is one each");
  flags.add("dry-run", o.dry_run, "print the commands, run nothing");
  flags.add("rank", o.rank, "rank the finished runs, run nothing");
  flags.add("slurm", o.slurm, "write OUT/sweep.sbatch, a job array with one task per point, --jobs of them at a time");
  flags.add("sbatch", o.sbatch, "#SBATCH flags of that script, such as '--gres=gpu:1 --time=60'");
  flags.add("point", o.point, "run only this point (as a task of the array does)", {.min = 0});
  flags.arguments("-- PROGRAM [its flags]");
  flags.example(
      "weft-sweep --grid lr=1e-5,5e-5,1e-4 batch_size=16,32 --metric val_loss -- train_multi_gpu --config default");
  flags.example(
      "weft-sweep --random lr=log:1e-5..1e-1 depth=int:2..8 --trials 20 --seed 1 --metric val_accuracy --goal max -- "
      "train_image --data cifar100:data --out {run}");
  flags.example(
      "weft-sweep --bayes lr=log:1e-5..1e-1 --trials 30 --min-iter 3 --jobs 4 --gpus 0,1,2,3 --metric val_accuracy "
      "--goal max -- train_image --data cifar100:data --out {run}");
  flags.example("weft-sweep --sweep sweep.yaml --out sweeps/lr --slurm --sbatch '--gres=gpu:1 --time=60' -- …");
  if (!flags.parse(words.flags)) return std::nullopt;

  if (words.kinds() > 1) throw UsageError("expected one of --grid, --random and --bayes, got several");
  if (words.grid.empty() && words.kinds() > 0) o.method = words.random.empty() ? "bayes" : "random";
  for (const auto* list : {&words.grid, &words.random, &words.bayes})
    for (const std::string& text : *list) o.parameters.push_back(parse_parameter(text));
  if (!file.empty()) {
    if (!o.parameters.empty()) throw UsageError("expected --sweep or --grid, --random, --bayes, got both");
    const SweepFile sweep = read_sweep_file(file);
    o.method = sweep.method;
    o.parameters = sweep.parameters;
    if (!flags.given("metric")) o.metric = sweep.metric;
    if (!flags.given("goal") && !sweep.goal.empty()) o.goal = sweep.goal;
    if (!flags.given("trials")) o.trials = sweep.run_cap;
    if (!flags.given("min-iter")) o.min_iter = sweep.min_iter, o.max_iter = sweep.max_iter;
    if (!flags.given("eta")) o.eta = sweep.eta;
    o.notes = sweep.notes;
    from_file = sweep.command;
    if (!words.command.empty() && !from_file.empty())
      o.notes.push_back(printable(file) + ": program and command are passed over: the command line has a program");
  }
  check_names(o.parameters);
  if (o.out.empty()) throw UsageError("--out: expected a folder, got an empty name");
  if (o.method != "grid" && o.trials == 0) throw UsageError("--trials: expected the number of points of a search");
  if (o.method == "grid" && flags.given("trials"))
    throw UsageError("--trials: expected --random or --bayes, a grid has all points");
  for (const auto& [needs_it, name] :
       {std::pair(o.method == "bayes", "--bayes"), std::pair(o.min_iter > 0, "--min-iter")})
    if (needs_it && o.metric.empty() && !(words.command.empty() && from_file.empty()))
      throw UsageError(std::string(name) + ": needs --metric, whose values it compares");
  if (flags.given("eta") && o.min_iter == 0) throw UsageError("--eta: needs --min-iter");
  if (!flags.given("sbatch") || o.slurm) {
    o.command = words.command.empty() ? from_file : words.command;
  } else {
    throw UsageError("--sbatch: needs --slurm");
  }
  if (o.parameters.empty() != o.command.empty())
    throw UsageError(o.command.empty()
                         ? "expected a program: weft-sweep … -- PROGRAM [its flags]"
                         : "expected --grid, --random, --bayes or --sweep, which give the values of flags");
  return o;
}

}  // namespace weft::weft_sweep
