# Finds LLVM for gemmc's build and for the users of its CMake package: LLVM_DIR when it is set, else Debian's and
# Ubuntu's places in the order of preference, else wherever CMake finds one. `gemmc_find_llvm(19)` takes only LLVM 19:
# the headers that a library was compiled with are the ones that its users must see.
macro(gemmc_find_llvm)
  set(gemmcVersions ${ARGV})
  if(NOT gemmcVersions)
    set(gemmcVersions 19 20 18 17)
  endif()
  foreach(version ${gemmcVersions})
    if(NOT LLVM_DIR AND EXISTS /usr/lib/llvm-${version}/lib/cmake/llvm/LLVMConfig.cmake)
      set(LLVM_DIR /usr/lib/llvm-${version}/lib/cmake/llvm CACHE PATH "Where LLVMConfig.cmake is")
    endif()
  endforeach()
  # LLVM's package looks for its C dependencies (zlib, zstd) with C checks.
  enable_language(C)
  find_package(LLVM REQUIRED CONFIG)
  if(NOT LLVM_VERSION_MAJOR IN_LIST gemmcVersions)
    message(FATAL_ERROR "gemmc needs LLVM ${gemmcVersions} (tested: 19), found ${LLVM_VERSION}: set LLVM_DIR")
  endif()
endmacro()
