# What a builder may choose, and the two libraries that the build needs.
option(GEMMC_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(GEMMC_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(GEMMC_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(GEMMC_PCH "Precompiled headers: a whole build takes less time" OFF)
option(GEMMC_UNITY "Several sources at a time: a whole build takes three fifths of the time, one after a change longer" OFF)
option(GEMMC_INSTALL "Make install rules and the CMake package" ${PROJECT_IS_TOP_LEVEL})

find_program(CCACHE ccache)
if(CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# LLVM 17 to 20 have the Support interfaces that gemmc uses; 19 is the one its tests run with.
include(${PROJECT_SOURCE_DIR}/cmake/FindGemmcLLVM.cmake)
gemmc_find_llvm()
message(STATUS "LLVM ${LLVM_VERSION} in ${LLVM_DIR}")
llvm_map_components_to_libnames(GEMMC_LLVM Support)
include(${PROJECT_SOURCE_DIR}/cmake/FindGemmcSqlite.cmake)

# Nobody throws or catches here, as in LLVM: without exceptions a build takes a seventh less (gcc 12; clang 19 with the
# sanitizers a sixth; lib/Tune, 2026-12-01).
add_compile_options(-Wall -Wextra -Wno-unused-parameter -fno-rtti -fno-exceptions)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # What gcc 12 sees in libstdc++'s own std::string + std::string (its bug 105651).
  add_compile_options(-Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict)
endif()
if(GEMMC_SANITIZE)
  # A null pointer that is used is AddressSanitizer's; to look at each pointer takes a sixth of the build and
  # a third of the unit tests.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr,null,object-size,pointer-overflow -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
else()
  # One binary for all machines: of LLVM's dependencies (zlib, zstd, z3) only what is used, no libstdc++ of this machine.
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed)
endif()
if(GEMMC_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "GEMMC_FUZZ needs clang: configure with -DCMAKE_CXX_COMPILER=/usr/lib/llvm-19/bin/clang++")
  endif()
endif()
