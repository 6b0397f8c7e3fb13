// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "core/profile/recording.h"

namespace weft::profile {

/// The recording as a JSON text that chrome://tracing and ui.perfetto.dev open (the Trace Event Format's JSON object):
/// one process for the threads and one per device, a complete event ("X") per span, a counter ("C") per change of a
/// device's memory. Times are microseconds with the nanoseconds after the point.
std::string chrome_trace(const Recording& recording);

}  // namespace weft::profile
