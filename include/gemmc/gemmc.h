/// gemmc as a library: a spec in, GEMMs on your stream out. See examples/cpp.
#pragma once
#include "gemmc/Library/Gemm.h"
