"""What this machine has of CUDA: the questions that several scripts ask."""
import ctypes
import os
import shutil


def find_ptxas():
    """Path of ptxas, or None: GEMMC_PTXAS, PATH, CUDA_HOME, the toolkit's usual place."""
    named = os.environ.get("GEMMC_PTXAS")
    if named is not None:  # set but empty: behave as if there were none
        return named if named and os.access(named, os.X_OK) else None
    return _find("ptxas")


def find_sanitizer():
    """Path of compute-sanitizer, or None."""
    return _find("compute-sanitizer")


def find_ncu():
    """Path of Nsight Compute's command line tool, or None."""
    return _find("ncu")


def _find(tool):
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [os.environ.get("PATH", "")] + [os.path.join(home, "bin") for home in homes if home]
    return shutil.which(tool, path=os.pathsep.join(places))


def find_gpu():
    """True when the CUDA driver is here and has a device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def gpu_ids():
    """What CUDA_VISIBLE_DEVICES calls the GPUs that it shows, or all of the machine."""
    if shown := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return [name.strip() for name in shown.split(",")]
    driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(0)
    driver.cuInit(0)
    driver.cuDeviceGetCount(ctypes.byref(count))
    return [str(index) for index in range(count.value)]


def gpu_facts():
    """(multiprocessors, `sm_90`) of the first GPU; there must be one."""
    driver = ctypes.CDLL("libcuda.so.1")
    device, values = ctypes.c_int(0), []
    driver.cuInit(0)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    for attribute in (16, 75, 76):  # count, compute capability
        value = ctypes.c_int(0)
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        values.append(value.value)
    return values[0], f"sm_{values[1]}{values[2]}"
