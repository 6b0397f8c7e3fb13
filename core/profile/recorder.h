// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <string>

#include "core/profile/recording.h"

// Where scopes report to while a Profiler records. Any thread.

namespace weft::profile {

namespace detail {
inline std::atomic<bool> recording{false};
int64_t now();
}  // namespace detail

inline bool is_recording() { return detail::recording.load(std::memory_order_relaxed); }

/// The time on the profile's clock, or -1 while nothing is recorded.
inline int64_t begin_span() { return is_recording() ? detail::now() : -1; }
/// Ends what begin_span began, on this thread's track. Spans that began before the recording are dropped.
void end_span(Category category, const char* name, bool backward, int64_t started);

/// Profiles call this thread so from now on ("thread 7" otherwise).
void name_thread(std::string name);

}  // namespace weft::profile
