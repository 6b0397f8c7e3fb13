// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/cuda/stream_check_history.h"

namespace emulator::cuda::stream_check {

/// Fills in `kernel` and `what`.
void describe(Trace& trace, const Work& work);
void report(const Conflict& conflict);
/// The host wrote the source of a copy that it has not waited for.
void report_written_source(const Trace& copy);

}  // namespace emulator::cuda::stream_check
