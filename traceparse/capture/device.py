"""What device does this process compute on, and how fast is it allowed to be?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["device_facts", "limit_facts"]

_MEGA, _MILLI = 10**6, 1000
_CPU_INFO = Path("/proc/cpuinfo")


def device_facts(torch: ModuleType) -> dict[str, Any]:
    """Return name and size of the current device."""
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties()
        return {
            "device_name": properties.name,
            "num_sms": properties.multi_processor_count,
            "device_memory_bytes": properties.total_memory,
        }
    if torch.xpu.is_available():
        properties = torch.xpu.get_device_properties()
        return {"device_name": properties.name, "device_memory_bytes": properties.total_memory}
    return {"device_name": _cpu_name()}


def limit_facts(torch: ModuleType) -> dict[str, Any]:
    """Return clocks in Hz and power in watts that the device may have at most.

    As NVML or amdsmi tell, where their packages are installed: ``nvidia-ml-py``, ``amdsmi``.
    """
    if not torch.cuda.is_available():
        return {}
    if torch.version.hip is None and find_spec("pynvml"):
        uuid = torch.cuda.get_device_properties().uuid
        return _of_nvml(import_module("pynvml"), str(uuid))
    if torch.version.hip is not None and find_spec("amdsmi"):
        current = torch.cuda.current_device()
        # HIP_VISIBLE_DEVICES renumbers devices, and amdsmi does not.
        index = torch.cuda._get_amdsmi_device_index(current)
        return _of_amdsmi(import_module("amdsmi"), index)
    return {}


def _of_nvml(nvml: ModuleType, uuid: str) -> dict[str, Any]:
    with _library(nvml.nvmlInit, nvml.nvmlShutdown):
        # By its own number: CUDA_VISIBLE_DEVICES renumbers devices, and NVML does not.
        device = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        sm, memory = nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM
        return {
            "driver_version": _text(nvml.nvmlSystemGetDriverVersion()),
            "sm_clock_hz": nvml.nvmlDeviceGetMaxClockInfo(device, sm) * _MEGA,
            "memory_clock_hz": nvml.nvmlDeviceGetMaxClockInfo(device, memory) * _MEGA,
            "power_limit_w": nvml.nvmlDeviceGetEnforcedPowerLimit(device) / _MILLI,
        }


def _of_amdsmi(smi: ModuleType, index: int) -> dict[str, Any]:
    with _library(smi.amdsmi_init, smi.amdsmi_shut_down):
        device = smi.amdsmi_get_processor_handles()[index]
        kinds = smi.AmdSmiClkType
        return {
            "sm_clock_hz": smi.amdsmi_get_clock_info(device, kinds.GFX)["max_clk"] * _MEGA,
            "memory_clock_hz": smi.amdsmi_get_clock_info(device, kinds.MEM)["max_clk"] * _MEGA,
            "power_limit_w": smi.amdsmi_get_power_cap_info(device)["power_cap"] / _MEGA,
        }


@contextmanager
def _library(begin: Any, end: Any) -> Iterator[None]:  # noqa: ANN401 - functions of a library
    begin()
    try:
        yield
    finally:
        end()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _cpu_name() -> str | None:
    """Return what Linux calls the processor, ``None`` elsewhere."""
    if not _CPU_INFO.exists():
        return None
    found = re.search(r"^model name\s*:\s*(.+)$", _CPU_INFO.read_text("utf-8", "replace"), re.M)
    return found[1] if found else None
