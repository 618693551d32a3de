# lit's configuration. Tests are .yaml, .tile, .ptx, .expr and .test files with RUN lines; see docs/testing.md.
#   --param build=DIR    the build under test (default: build/)
#   --param sanitizer=1  it is a sanitizer build (feature `sanitizer`)
import os
import shutil
import sys

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = os.path.abspath(lit_config.params.get("build", os.path.join(root, "build")))
# gemmc with test/RecordDiags.cpp linked in; otherwise the same objects as bin/gemmc.
gemmc = os.path.join(build, "test", "bin", "gemmc")
if not os.path.exists(gemmc):
    lit_config.fatal(f"{gemmc} is missing: build first (ninja -C {build} gemmc-recorded)")

config.name = "gemmc"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".yaml", ".tile", ".ptx", ".expr", ".test"]
config.excludes = ["Inputs", "lit.cfg.py"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(build, "test", "lit")

config.gemmc = gemmc  # for test formats of our own

# FileCheck and `not` of the LLVM whose lit this is (DIR/build/utils/lit/lit/__init__.py), else of PATH.
llvm_bin = os.path.abspath(os.path.join(os.path.dirname(lit.__file__), "../../../../bin"))
# Scripts run in the Python that runs lit: behind a `python3` of PATH there may be a shell script that looks for one.
path = [llvm_bin, os.path.dirname(sys.executable), os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
for name in ("GEMMC_SKIP_LOG", "GEMMC_PTXAS", "CUDA_HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# No tuning database but those that tests make: what was measured on this machine must not change what is tested.
config.environment["GEMMC_TUNING"] = ""

# Sanitizers watch the compiler and the emulator, not the kernels: one schedule (lazy) walks nearly the code of four, and of
# two. The others' is walked by the tests that ask for three or more, and by the unit tests.
sanitized = bool(lit_config.params.get("sanitizer"))
# ptxas is not watched; where nobody reads what it says, it has judged the same PTX in the other build.
for_sanitizers = [
    (r"%gemmc check(?!.*--schedules)", f"{gemmc} check --schedules=1"),
    (r"--schedules=2\b", "--schedules=1"),
    (r"%ptxas(?= [^-])(?![^&;|]*(?:>|\|(?!\|)))", "true"),
]

config.substitutions += [
    # The stand-in for the driver and cuBLASLt, which takes PTX: each launch takes 100 us. In front of a command. There is
    # no ptxas: an empty name would say so to scripts, but have the tool look for one and assemble each kernel that it times.
    ("%fake-gpu", f"env LD_LIBRARY_PATH={build}/test/fakes/driver${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} GEMMC_PTXAS=/dev/null/ptxas"),
    *(for_sanitizers if sanitized else []),
    ("%gemmc", gemmc),
    ("%ptxas", os.path.join(root, "utils", "ptxas-check")),
    ("%python", sys.executable),
    ("%root", root),
]

sys.path.insert(0, os.path.join(root, "utils"))
from toolkit import find_gpu, find_ptxas

if find_ptxas():
    config.available_features.add("ptxas")
if shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc"):
    config.available_features.add("nvcc")
if find_gpu():
    config.available_features.add("gpu")
if sanitized:
    config.available_features.add("sanitizer")
