// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/sweep.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/text.h"
#include "io/atomic_file.h"
#include "io/file_reader.h"
#include "io/json.h"
#include "train/exit.h"

namespace weft::weft_sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The flags of Weft's programs for their output folder and for the metrics that rank runs: `{run}` is the run's
/// folder, `{sweep}` the name of the sweep's folder. Programs that refuse a folder with another run in it go on with
/// that run: a point that was stopped or has failed is run again in its folder.
const std::map<std::string, std::vector<std::string>>& folder_flags() {
  static const std::vector<std::string> out{"--out={run}", "--resume=auto"},
      finetune{"--out={run}", "--resume-from-checkpoint=auto"}, nersc{"--root_dir={run}", "--sweep_id={sweep}"},
      mnist{"--output-dir={run}", "--log-dir={run}"};
  static const std::map<std::string, std::vector<std::string>> flags{
      {"train_image", out},    {"linear_probe", out},       {"ouai_demo", out},          {"finetune", finetune},
      {"train_gpt", out},      {"train_single_gpu", nersc}, {"train_multi_gpu", nersc},  {"mnist", mnist},
      {"mnist_base", mnist},   {"mnist_ddp", mnist},        {"mnist_horovod", mnist},    {"base_training", mnist},
      {"ddp_training", mnist}, {"ddp_example", mnist},      {"horovod_training", mnist},
  };
  return flags;
}

/// Replaces each `{name}` by its value, in one pass: a value that reads `{run}` itself stays as it is. Returns the
/// names that occurred.
std::set<std::string> fill(std::vector<std::string>& command, const std::map<std::string, std::string>& values) {
  std::set<std::string> found;
  for (std::string& word : command)
    for (size_t at = 0; (at = word.find('{', at)) != std::string::npos;) {
      const size_t end = word.find('}', at);
      const auto value = end == std::string::npos ? values.end() : values.find(word.substr(at + 1, end - at - 1));
      if (value == values.end()) {
        ++at;
        continue;
      }
      word.replace(at, end + 1 - at, value->second);
      at += value->second.size();
      found.insert(value->first);
    }
  return found;
}

/// The name of the sweep's folder, however its path is written.
std::string name_of_folder(const fs::path& folder) {
  const std::string name = (fs::absolute(folder) / "").lexically_normal().parent_path().filename().string();
  return name.empty() ? "sweep" : name;
}

void add_folder_flags(std::vector<std::string>& command, const std::string& run, const std::string& sweep) {
  for (const std::string& word : command) {
    const auto known = folder_flags().find(fs::path(word).filename().string());
    if (known == folder_flags().end()) continue;
    std::vector<std::string> flags = known->second;
    const bool says = std::any_of(command.begin(), command.end(), [](const std::string& own) {
      return own.starts_with("--resume") || own.starts_with("--overwrite");
    });
    if (says) std::erase_if(flags, [](const std::string& flag) { return flag.starts_with("--resume"); });
    fill(flags, {{"run", run}, {"sweep", sweep}});
    command.insert(command.end(), flags.begin(), flags.end());
    return;
  }
  throw train::UsageError("expected {run} in the command, which stands for the folder of a run: " +
                          printable(command[0]) + " is not a program whose flag for it is known");
}

Json json_of(const Point& point) {
  Json json = Json::object();
  for (const auto& [name, value] : point) json[name] = value;
  return json;
}

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

constexpr const char* kStateNames[] = {"open", "done", "failed", "stopped", "pruned"};
constexpr const char* kKindNames[] = {"values", "uniform", "log_uniform", "whole"};

Json json_of(const Parameter& parameter) {
  return {{"name", parameter.name},     {"kind", kKindNames[static_cast<size_t>(parameter.kind)]},
          {"values", parameter.values}, {"low", parameter.low},
          {"high", parameter.high},     {"step", parameter.step}};
}

template <class Int>
Int integer(const Json& json, const char* key) {
  return json_integer<Int>(json.at(key), str("sweep.json: ", key));
}

Parameter parameter_of(const Json& json) {
  const auto kind = std::find(std::begin(kKindNames), std::end(kKindNames), json.at("kind").get<std::string>());
  WEFT_CHECK(kind != std::end(kKindNames), "sweep.json: unknown kind '", printable(json.at("kind").get<std::string>()),
             "'");
  return {.name = json.at("name").get<std::string>(),
          .kind = static_cast<Parameter::Kind>(kind - std::begin(kKindNames)),
          .values = json.at("values").get<std::vector<std::string>>(),
          .low = json.at("low").get<double>(),
          .high = json.at("high").get<double>(),
          .step = json.value("step", 0.0)};
}

}  // namespace

std::vector<std::string> Sweep::command_of(const Point& point) const {
  std::vector<std::string> out = command;
  std::vector<std::string> flags;
  std::map<std::string, std::string> values{{"run", folder_of(point).string()}};
  for (const auto& [name, value] : point) values[name] = value;
  const std::set<std::string> found = fill(out, values);
  for (const auto& [name, value] : point) {
    if (found.contains(name)) continue;
    if (name[0] == '-')
      flags.insert(flags.end(), {name, value});
    else
      flags.push_back("--" + name + '=' + value);
  }
  if (!found.contains("run")) add_folder_flags(out, folder_of(point).string(), name_of_folder(folder));
  out.insert(out.end(), flags.begin(), flags.end());
  return out;
}

void Sweep::save() const {
  Json all = Json::array();
  for (const Point& point : points) all.push_back(json_of(point));
  Json json{{"command", command},
            {"metric", metric},
            {"goal", smaller_wins ? "min" : "max"},
            {"by", by_best ? "best" : "last"},
            {"points", all}};
  if (bayes) {
    Json space = Json::array();
    for (const Parameter& parameter : bayes->parameters) space.push_back(json_of(parameter));
    json["bayes"] = {{"parameters", space}, {"trials", bayes->trials}, {"seed", bayes->seed}};
  }
  if (halving)
    json["early_stop"] = {{"min_iter", halving->min_iter}, {"eta", halving->eta}, {"max_iter", halving->max_iter}};
  write_atomically(folder / "sweep.json", dump(json), "sweep");
}

bool Sweep::exists(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "sweep.json", ignored);
}

Sweep Sweep::load(const fs::path& folder) {
  const fs::path path = folder / "sweep.json";
  WEFT_CHECK(exists(folder), "expected a sweep in ", folder.string(), ", got no ", path.string());
  Sweep sweep;
  sweep.folder = folder;
  const std::string text = read_text(path, "sweep");
  check_ordered(text, path.string());
  try {
    const Json json = Json::parse(text);
    sweep.command = json.at("command").get<std::vector<std::string>>();
    sweep.metric = json.at("metric").get<std::string>();
    sweep.smaller_wins = json.at("goal") == "min";
    sweep.by_best = json.at("by") == "best";
    for (const Json& entry : json.at("points")) {
      Point point;
      for (const auto& [name, value] : entry.items()) point.emplace_back(name, value.get<std::string>());
      sweep.points.push_back(std::move(point));
    }
    if (json.contains("bayes")) {
      const Json& bayes = json["bayes"];
      sweep.bayes =
          Bayes{.parameters = {}, .trials = integer<size_t>(bayes, "trials"), .seed = integer<uint64_t>(bayes, "seed")};
      for (const Json& entry : bayes.at("parameters")) sweep.bayes->parameters.push_back(parameter_of(entry));
    }
    if (json.contains("early_stop")) {
      const Json& stop = json["early_stop"];
      sweep.halving = Halving{integer<int64_t>(stop, "min_iter"), integer<int64_t>(stop, "eta"),
                              stop.contains("max_iter") ? integer<int64_t>(stop, "max_iter") : 0};
      WEFT_CHECK(sweep.halving->min_iter >= 1 && sweep.halving->eta >= 2, path.string(),
                 ": early_stop: expected min_iter of at least 1 and eta of at least 2, got ", sweep.halving->min_iter,
                 " and ", sweep.halving->eta);
    }
  } catch (const Json::exception&) {
    fail(path.string(), ": expected a file of weft-sweep, got something else. Delete it to start over");
  }
  WEFT_CHECK(!sweep.command.empty(), path.string(), ": expected a command, got an empty one");
  return sweep;
}

void save_result(const fs::path& folder, const Point& point, const PointResult& result) {
  write_atomically(folder / "point.json",
                   dump({{"state", kStateNames[static_cast<size_t>(result.state)]},
                         {"exit_code", result.exit_code},
                         {"seconds", result.seconds},
                         {"values", json_of(point)}}),
                   "point");
}

PointResult load_result(const fs::path& folder) {
  PointResult result;
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "point.json", ignored)) return result;
  const Json json = Json::parse(read_text(folder / "point.json", "sweep"), nullptr, false);
  if (!json.is_object()) return result;  // never ran, or half-written by a full disk: run it again
  const std::string state = json.contains("state") && json["state"].is_string() ? json["state"] : Json("");
  const auto found = std::find(std::begin(kStateNames), std::end(kStateNames), state);
  if (found == std::end(kStateNames)) return result;
  result.state = static_cast<PointResult::State>(found - std::begin(kStateNames));
  if (json.contains("exit_code") && json["exit_code"].is_number_integer())
    result.exit_code = json_integer<int>(json["exit_code"], folder.string() + ": exit_code");
  if (json.contains("seconds") && json["seconds"].is_number()) result.seconds = json["seconds"];
  return result;
}

}  // namespace weft::weft_sweep
