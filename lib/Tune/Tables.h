/// The files of lib/Tune/tables as the build embeds them (cmake/EmbedTables.cmake).
#pragma once

namespace gemmc::tune {
struct EmbeddedTable {
  const char *name; ///< Null: the end.
  const char *text;
};
extern const EmbeddedTable embeddedTables[];
} // namespace gemmc::tune
