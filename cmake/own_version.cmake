# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=kernels/cuda -DOUT=own_version.h -P own_version.cmake: a number for the text of the kernels.
file(GLOB_RECURSE texts ${FOLDER}/*.cu ${FOLDER}/*.cuh)
list(SORT texts)
set(hashes "")
foreach(text ${texts})
  file(SHA256 ${text} hash)
  string(APPEND hashes ${hash})
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 12 version)
file(WRITE ${OUT} "#define WEFT_OWN_VERSION \"${version}\"\n")
