# What a builder may choose, and the one library that the build needs.
option(GEMMC_TESTS "Build the tests" ON)
option(GEMMC_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(GEMMC_FUZZ "Build the libFuzzer targets (clang only)" OFF)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# LLVM 17 to 20 have the Support interfaces that gemmc uses; 19 is the one its tests run with.
if(NOT LLVM_DIR AND EXISTS /usr/lib/llvm-19/cmake)
  set(LLVM_DIR /usr/lib/llvm-19/cmake)
endif()
find_package(LLVM REQUIRED CONFIG)
if(LLVM_VERSION_MAJOR LESS 17 OR LLVM_VERSION_MAJOR GREATER 20)
  message(FATAL_ERROR "gemmc needs LLVM Support 17 to 20 (tested: 19), found ${LLVM_VERSION}: set LLVM_DIR")
endif()
llvm_map_components_to_libnames(GEMMC_LLVM Support)

add_compile_options(-Wall -Wextra -Wno-unused-parameter -fno-rtti)
if(GEMMC_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
else()
  add_link_options(-static-libstdc++ -static-libgcc)
endif()
