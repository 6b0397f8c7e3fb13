// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/weft_sweep/ranking.h"
#include "core/text.h"
#include "kernels/error.h"
#include "train/shell_word.h"

namespace weft::weft_sweep {
namespace {

/// Reads the space, the points and their values from the sweep's folder, and prints the values of the next point.
constexpr const char* kAsk = R"(
import sys
sys.path[:] = filter(None, sys.path)  # `python3 -c` looks for modules in the working folder first, where anybody's may lie
import json, os, warnings
try:
    import optuna
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
except ImportError:
    sys.exit(3)
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
def read(name):
    with open(os.path.join(sys.argv[1], name), encoding="utf-8") as file:
        return json.load(file)
sweep, ranking = read("sweep.json"), read("ranking.json")

def distribution(p):
    if p["kind"] == "values":
        return CategoricalDistribution(p["values"])
    if p["kind"] == "whole":
        return IntDistribution(int(p["low"]), int(p["high"]))
    return FloatDistribution(p["low"], p["high"], log=p["kind"] == "log_uniform")
space = {p["name"]: distribution(p) for p in sweep["bayes"]["parameters"]}
steps = {p["name"]: p.get("step", 0) for p in sweep["bayes"]["parameters"]}

def text_of(d, value, step):
    if not isinstance(d, FloatDistribution):
        return str(value)
    if step:
        multiple = round(value / step)
        multiple += (multiple * step < d.low) - (multiple * step > d.high)
        return "%.10g" % (multiple * step)
    return "%.10g" % min(max(float("%.4g" % value), d.low), d.high)

def value_of(d, text):
    if isinstance(d, CategoricalDistribution):
        return d.choices[d.choices.index(text)]
    value = type(d.low)(text)
    if not d.low <= value <= d.high:
        raise ValueError(text)
    return value

runs = {run["point"]: run for run in ranking["runs"]}
study = optuna.create_study(
    direction={"min": "minimize", "max": "maximize"}[sweep["goal"]],
    sampler=optuna.samplers.TPESampler(seed=(sweep["bayes"]["seed"] + len(runs)) % 2**32, constant_liar=True))
states = {"done": "COMPLETE", "stopped early": "PRUNED", "failed": "FAIL"}
seen = set()
for number, point in enumerate(sweep["points"]):
    seen.add(tuple(sorted(point.items())))
    run = runs[number]
    state, value = states.get(run["state"], "RUNNING"), run[sweep["by"]]
    if value is None and state != "RUNNING":
        state = "FAIL"
    try:
        params = {name: value_of(d, point[name]) for name, d in space.items()}
    except (KeyError, ValueError):
        continue  # of another space: a range that has changed since
    study.add_trial(optuna.trial.create_trial(
        state=optuna.trial.TrialState[state], params=params, distributions=space,
        value=value if state == "COMPLETE" else None,
        intermediate_values={run["count"]: value} if state == "PRUNED" else {}))
for _ in range(100):
    values = {name: text_of(space[name], value, steps[name]) for name, value in study.ask(space).params.items()}
    if tuple(sorted(values.items())) not in seen:
        print(json.dumps(values))
        break
else:
    print("null")
)";

}  // namespace

std::optional<Point> next_point(const Sweep& sweep) {
  sweep.save();
  Ranking(sweep).save(sweep);
  // An environment's python3 hides Debian's, which has Debian's Optuna.
  const std::string command =
      "for python in python3 /usr/bin/python3; do command -v $python >/dev/null || continue; "
      "$python -c " +
      train::shell_word(kAsk) + ' ' + train::shell_word(sweep.folder.string()) +
      "; code=$?; [ $code -eq 3 ] || exit $code; done; exit 3";
  std::FILE* pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c): every word of it is quoted
  WEFT_CHECK(pipe != nullptr, "--bayes: cannot start a shell");
  std::string reply;
  char buffer[4096];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) reply.append(buffer, got);
  const int status = ::pclose(pipe), code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  WEFT_CHECK(code != 3,
             "--bayes: expected Optuna 3 or newer for python3, got none. apt-get install python3-optuna, or ",
             "pip install optuna; --random needs neither");
  WEFT_CHECK(code == 0, "--bayes: Optuna failed (exit code ", code, ", its words are above)");
  const auto values = nlohmann::json::parse(reply, nullptr, false);
  if (values.is_null()) return std::nullopt;
  WEFT_CHECK(values.is_object(), "--bayes: expected a point from Optuna, got '", printable(reply), "'");
  Point point;
  for (const Parameter& p : sweep.bayes->parameters) {
    const auto found = values.find(p.name);
    WEFT_CHECK(found != values.end() && found->is_string(), "--bayes: expected a value of '", printable(p.name),
               "' from Optuna, got '", printable(reply), "'");
    point.emplace_back(p.name, found->get<std::string>());
  }
  return point;
}

}  // namespace weft::weft_sweep
