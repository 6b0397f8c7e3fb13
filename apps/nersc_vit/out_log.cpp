// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/out_log.h"

#include <charconv>
#include <chrono>
#include <ctime>
#include <iostream>

#include "kernels/error.h"

namespace weft::nersc_vit {
namespace {

std::string now() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[64];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  std::snprintf(text + length, sizeof text - length, ",%03d", static_cast<int>(milliseconds % 1000));
  return text;
}

}  // namespace

void OutLog::open(const std::filesystem::path& path) {
  file_.open(path, std::ios::app);
  WEFT_CHECK(file_.is_open(), "out.log: cannot write ", path.string());
}

void OutLog::info(const std::string& text) {
  const std::string line = now() + " - root - INFO - " + text + '\n';
  std::cout << line << std::flush;  // in one piece: other ranks write too
  if (file_.is_open()) file_ << line << std::flush;
}

std::string python_number(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string number(text, end);
  if (number.find_first_of(".en") == std::string::npos) number += ".0";
  return number;
}

}  // namespace weft::nersc_vit
