// SPDX-License-Identifier: Apache-2.0
#include "train/record/scalar_log.h"

#include <nlohmann/json.hpp>

#include "io/atomic_file.h"
#include "kernels/error.h"
#include "train/record/yaml_text.h"

namespace weft::train {

std::string yaml_value(const HyperParameter& value) {
  if (const auto* number = std::get_if<double>(&value)) return yaml_number(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return yaml_text(std::get<std::string>(value));
}

std::string wandb_config(const HyperParameters& values) {
  std::string yaml = "wandb_version: 1\n";  // version of the layout
  for (const auto& [key, value] : values) yaml += "\n" + yaml_key(key) + ":\n  value: " + yaml_value(value) + "\n";
  return yaml;
}

ScalarLog::ScalarLog(std::filesystem::path folder, int64_t resumed_step)
    : folder_(std::move(folder)), lines_(folder_.metrics(), resumed_step), board_(folder_.path(), resumed_step) {}

void ScalarLog::config(const HyperParameters& values) {
  write_atomically(folder_.file("config.yaml"), wandb_config(values), "config");
  board_.hyper_parameters(values);
}

void ScalarLog::log(int64_t step, const NamedNumbers& values) {
  nlohmann::ordered_json line{{"step", step}, {"time", wall_time()}};
  for (const auto& [name, value] : values) {
    WEFT_CHECK(!line.contains(name), "scalar log: expected each name once and none called step or time, got '", name,
               "' again");
    line[name] = value;
  }
  lines_.append(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  for (const auto& [name, value] : values) board_.scalar(name, value, step);
}

void ScalarLog::image(std::string_view tag, const Canvas& canvas, int64_t step) { board_.image(tag, canvas, step); }

void ScalarLog::end(bool success) { board_.end(success); }

}  // namespace weft::train
