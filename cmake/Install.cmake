# `cmake --install build`: the tool, the headers, the static libraries and a CMake package:
#   find_package(gemmc REQUIRED)
#   target_link_libraries(app PRIVATE gemmc::gemmc)     (or one room: gemmc::Driver)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(GEMMC_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/gemmc)
get_property(rooms GLOBAL PROPERTY GEMMC_ROOMS)
install(TARGETS ${rooms} EXPORT gemmcTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS gemmc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/gemmc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h PATTERN *.def)
install(EXPORT gemmcTargets NAMESPACE gemmc:: DESTINATION ${GEMMC_CMAKE_DIR})

configure_package_config_file(cmake/gemmcConfig.cmake.in ${PROJECT_BINARY_DIR}/gemmcConfig.cmake
  INSTALL_DESTINATION ${GEMMC_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gemmcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gemmcConfig.cmake ${PROJECT_BINARY_DIR}/gemmcConfigVersion.cmake
  cmake/FindGemmcLLVM.cmake cmake/FindGemmcSqlite.cmake DESTINATION ${GEMMC_CMAKE_DIR})
