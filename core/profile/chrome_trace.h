// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "core/profile/recording.h"

namespace weft::profile {

/// The recording as a JSON text that chrome://tracing and ui.perfetto.dev open (the Trace Event Format's JSON object):
/// the threads are a process, and so is each device. A span is a complete event ("X"); a change of a device's memory is
/// a counter ("C"). Times are microseconds with the nanoseconds after the point.
std::string chrome_trace(const Recording& recording);

}  // namespace weft::profile
