// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

namespace weft::data {

/// The hint that an error adds if a data set is still in an archive (.tar, .tar.gz, .tgz, .zip, .7z, …): `place`
/// itself, files in the folder `place`, or PLACE.zip beside it, such as "DIR/train.tar is an archive: unpack it first".
/// Empty if there is none.
std::string archive_hint(const std::filesystem::path& place);

}  // namespace weft::data
