// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

namespace bench {

/// A folder CLASS/*.jpg of drawn photographs (500 x 375, quality 90: about 100 kB each, as in ImageNet), removed at the
/// end. Images are the same every time. Errors: the folder cannot be written; built without libjpeg-turbo.
class ImageFolder {
 public:
  ImageFolder(int classes, int images_per_class);
  ~ImageFolder();
  ImageFolder(const ImageFolder&) = delete;
  ImageFolder& operator=(const ImageFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace bench
