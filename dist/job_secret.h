// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "dist/launch_environment.h"

namespace weft::dist {

/// What only the ranks of one job know, the same on all of them: WEFT_JOB_SECRET, or else derived from the cookie in
/// the home folder (~/.weft_cookie, made when it is not there) and the name of the job. Errors: WEFT_JOB_SECRET is
/// shorter than 16 characters; the cookie cannot be used.
std::string job_secret(const EnvironmentVariables& variables, const std::string& job);

/// The same with a cookie file at another place.
std::string job_secret(const EnvironmentVariables& variables, const std::string& job,
                       const std::filesystem::path& cookie);

/// The bytes of a cookie file; one of 32 random bytes is made, for its owner alone, when there is none. Errors:
/// somebody else owns it, or could read or change it; it is no file, or holds less than 32 bytes.
std::string read_cookie(const std::filesystem::path& file);

}  // namespace weft::dist
