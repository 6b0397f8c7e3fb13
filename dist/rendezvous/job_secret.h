// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "dist/rendezvous/launch_environment.h"

namespace weft::dist {

/// The secret that only the ranks of one job know: WEFT_JOB_SECRET, else derived from the cookie in the home folder
/// (~/.weft_cookie, created if missing) and the name of the job. Errors: WEFT_JOB_SECRET is
/// shorter than 16 characters; the cookie cannot be used.
std::string job_secret(const EnvironmentVariables& variables, const std::string& job);

/// The same with another cookie file.
std::string job_secret(const EnvironmentVariables& variables, const std::string& job,
                       const std::filesystem::path& cookie);

/// The bytes of a cookie file; if it does not exist, one of 32 random bytes is created, readable by its owner only.
/// Errors: another user owns it or has rights on it; it is no file, or shorter than 32 bytes.
std::string read_cookie(const std::filesystem::path& file);

}  // namespace weft::dist
