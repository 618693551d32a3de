# Finds SQLite for the tuning database: the static library, since gemmc runs on machines that have nothing but libc. The
# target gemmc::Sqlite is what lib/Tune links; the users of an installed gemmc get it from here, too.
if(NOT TARGET gemmc::Sqlite)
  find_path(SQLITE_INCLUDE_DIR sqlite3.h)
  find_library(SQLITE_LIBRARY NAMES libsqlite3.a)
  if(NOT SQLITE_INCLUDE_DIR OR NOT SQLITE_LIBRARY)
    message(FATAL_ERROR "gemmc needs SQLite's header and static library for its tuning database: install libsqlite3-dev "
      "(Debian, Ubuntu), or set SQLITE_INCLUDE_DIR and SQLITE_LIBRARY (sqlite3.h: ${SQLITE_INCLUDE_DIR}, "
      "libsqlite3.a: ${SQLITE_LIBRARY})")
  endif()
  add_library(gemmc::Sqlite STATIC IMPORTED)
  set_target_properties(gemmc::Sqlite PROPERTIES IMPORTED_LOCATION ${SQLITE_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${SQLITE_INCLUDE_DIR})
  # libm and the loader of extensions, which is never used; on a libc of today both are parts of libc or of its package.
  set_property(TARGET gemmc::Sqlite PROPERTY INTERFACE_LINK_LIBRARIES m ${CMAKE_DL_LIBS})
endif()
