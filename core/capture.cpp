// SPDX-License-Identifier: Apache-2.0
#include "core/capture.h"

#include <atomic>

namespace weft {
namespace {
thread_local capture_detail::Capture* capturing = nullptr;
std::atomic<uint64_t> captures{0};
}  // namespace

bool is_capturing(Device device) { return capturing && capturing->device == device; }

bool has_captured() { return captures > 0; }

uint64_t capture_number() { return capturing ? capturing->number : 0; }

void refuse_while_capturing(const char* what, Device device) {
  WEFT_CHECK(!is_capturing(device), what, ": needs the host, while a graph is captured on ", device,
             ". Do it before capture() or after replay()");
}

void on_each_run(std::function<void()> work) {
  if (capturing)
    capturing->each_run.push_back(std::move(work));
  else
    work();
}

void check_before_replay(std::function<void()> check) {
  if (capturing) capturing->checks.push_back(std::move(check));
}

namespace capture_detail {

CaptureGuard::CaptureGuard(Capture& capture) {
  WEFT_CHECK(!capturing, "graph: capture inside the capture of another graph");
  capture.number = ++captures;
  capturing = &capture;
}
CaptureGuard::~CaptureGuard() { capturing = nullptr; }

}  // namespace capture_detail
}  // namespace weft
