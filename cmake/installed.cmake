# SPDX-License-Identifier: Apache-2.0
# Runs at the end of `cmake --install`, with PREFIX (DESTDIR before it), INCLUDES, LIBRARIES, PROGRAMS, VERSION and STRIP set:
# makes what was installed free of this build's folders, of its include style, and of debug lines.

# Headers: "core/tensor.h" becomes <weft/core/tensor.h>, so that a program may have a core/tensor.h of its own.
file(GLOB_RECURSE headers ${PREFIX}/${INCLUDES}/weft/*.h ${PREFIX}/${INCLUDES}/weft/*.cuh ${PREFIX}/${INCLUDES}/weft/*.cu)
foreach(header ${headers})
  file(READ ${header} text)
  string(REGEX REPLACE "(#[ \t]*include )\"((apps|core|data|dist|emulator|io|kernels|nn|optim|train)/[^\"]+)\"" "\\1<weft/\\2>" changed "${text}")
  if(NOT changed STREQUAL text)
    file(WRITE ${header} "${changed}")
  endif()
endforeach()

# For builds without CMake: `g++ -std=c++20 train.cpp $(pkg-config --cflags --libs weft)`.
file(RELATIVE_PATH up ${PREFIX}/${LIBRARIES}/pkgconfig ${PREFIX})
string(REGEX REPLACE "/$" "" up "${up}")
file(WRITE ${PREFIX}/${LIBRARIES}/pkgconfig/weft.pc "prefix=\${pcfiledir}/${up}
libdir=\${prefix}/${LIBRARIES}
Name: weft
Description: Deep learning in C++20 and CUDA
Version: ${VERSION}
Cflags: -I\${prefix}/${INCLUDES} -fopenmp
Libs: -L\${libdir} -Wl,-rpath,\${libdir} -lweft -fopenmp -lpthread
")

# Errors name their place without debug lines, which are nine tenths of the bytes.
if(STRIP)
  file(GLOB_RECURSE files ${PREFIX}/${LIBRARIES}/libweft.so* ${PREFIX}/${LIBRARIES}/weft-emulate/*)
  foreach(folder ${PROGRAMS})
    file(GLOB_RECURSE programs ${PREFIX}/${folder}/*)
    list(APPEND files ${programs})
  endforeach()
  foreach(file ${files})
    file(READ ${file} magic LIMIT 4 HEX)
    if(magic STREQUAL "7f454c46" AND NOT IS_SYMLINK ${file})  # ELF; the others are scripts
      execute_process(COMMAND ${STRIP} --strip-debug ${file})
    endif()
  endforeach()
endif()
