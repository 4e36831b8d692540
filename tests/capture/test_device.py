from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from traceparse.capture import device
from traceparse.capture.device import device_facts, limit_facts

PROPERTIES = SimpleNamespace(
    name="NVIDIA H200", multi_processor_count=132, total_memory=150, uuid="12-ab"
)


def torch_of(*, cuda: bool = False, xpu: bool = False, hip: str | None = None) -> Any:
    kind = {
        "get_device_properties": lambda: PROPERTIES,
        "current_device": lambda: 1,
        "_get_amdsmi_device_index": lambda index: index + 1,
    }
    return SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: cuda, **kind),
        xpu=SimpleNamespace(is_available=lambda: xpu, **kind),
        version=SimpleNamespace(hip=hip),
    )


def installed(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> list[str]:
    """Put a library in place, and return what is called of it."""
    called: list[str] = []
    module = ModuleType(name)
    module.__spec__ = SimpleNamespace(name=name)  # type: ignore[assignment]
    for key, value in functions.items():

        def call(*args: Any, key: str = key, value: Any = value) -> Any:
            called.append(" ".join([key, *map(str, args)]))
            return value(*args) if callable(value) else value

        setattr(module, key, call if not key[0].isupper() and not key.isupper() else value)
    monkeypatch.setitem(sys.modules, name, module)
    return called


def test_a_gpu_has_a_name_and_a_size() -> None:
    assert device_facts(torch_of(cuda=True)) == {
        "device_name": "NVIDIA H200",
        "num_sms": 132,
        "device_memory_bytes": 150,
    }
    assert device_facts(torch_of(xpu=True)) == {
        "device_name": "NVIDIA H200",
        "device_memory_bytes": 150,
    }


def test_a_cpu_is_named_as_linux_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr(device, "_CPU_INFO", info)
    assert device_facts(torch_of()) == {"device_name": None}
    info.write_bytes(b"processor: 0\nmodel name\t: Xeon \xff 8\nmodel name\t: other\n")
    assert device_facts(torch_of()) == {"device_name": "Xeon \ufffd 8"}
    info.write_text("Processor: ARM\n")
    assert device_facts(torch_of()) == {"device_name": None}


def test_without_a_gpu_or_a_library_there_are_no_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device, "find_spec", lambda _: None)
    for torch in (torch_of(), torch_of(cuda=True), torch_of(cuda=True, hip="6.2")):
        assert limit_facts(torch) == {}


@pytest.mark.parametrize("version", ["550.54", b"550.54"], ids=repr)
def test_limits_of_nvidia_are_told_by_nvml(
    monkeypatch: pytest.MonkeyPatch, version: str | bytes
) -> None:
    called = installed(
        monkeypatch,
        "pynvml",
        nvmlInit=None,
        nvmlShutdown=None,
        nvmlDeviceGetHandleByUUID="it",
        nvmlSystemGetDriverVersion=version,
        nvmlDeviceGetMaxClockInfo=lambda _, kind: {1: 1980, 2: 3201}[kind],
        nvmlDeviceGetEnforcedPowerLimit=700_000,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
    )
    assert limit_facts(torch_of(cuda=True)) == {
        "driver_version": "550.54",
        "sm_clock_hz": 1_980_000_000,
        "memory_clock_hz": 3_201_000_000,
        "power_limit_w": 700.0,
    }
    assert called[:2] == ["nvmlInit", "nvmlDeviceGetHandleByUUID GPU-12-ab"]
    assert called[-1] == "nvmlShutdown"


def test_limits_of_amd_are_told_by_amdsmi(monkeypatch: pytest.MonkeyPatch) -> None:
    called = installed(
        monkeypatch,
        "amdsmi",
        amdsmi_init=None,
        amdsmi_shut_down=None,
        amdsmi_get_processor_handles=["a", "b", "c"],
        amdsmi_get_clock_info=lambda _, kind: {"max_clk": {"gfx": 2100, "mem": 1300}[kind]},
        amdsmi_get_power_cap_info=lambda _: {"power_cap": 750_000_000},
        AmdSmiClkType=SimpleNamespace(GFX="gfx", MEM="mem"),
    )
    assert limit_facts(torch_of(cuda=True, hip="6.2")) == {
        "sm_clock_hz": 2_100_000_000,
        "memory_clock_hz": 1_300_000_000,
        "power_limit_w": 750.0,
    }
    assert "amdsmi_get_clock_info c gfx" in called
    assert called[-1] == "amdsmi_shut_down"


def test_a_library_that_fails_is_shut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no permission")

    called = installed(
        monkeypatch,
        "pynvml",
        nvmlInit=None,
        nvmlShutdown=None,
        nvmlDeviceGetHandleByUUID=fail,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
    )
    with pytest.raises(RuntimeError, match="no permission"):
        limit_facts(torch_of(cuda=True))
    assert called[-1] == "nvmlShutdown"
