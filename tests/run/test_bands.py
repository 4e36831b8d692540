"""Which numbers are good, and by whose word."""

from __future__ import annotations

import msgspec
import pytest

from traceparse.run.bands import Band, bands, bands_of


def judged(maximum=None, dtype="bf16", **values):
    found = bands_of(values, reference_dtype=dtype, maximum=maximum)
    return {name: one["band"] for name, one in found.items()}


@pytest.mark.parametrize(
    ("mfu", "band"),
    [
        (0.0, "poor"),
        (0.199, "poor"),
        (0.2, "typical"),
        (0.35, "good"),
        (0.45, "excellent"),
        (0.79, "excellent"),
        (0.81, "impossible"),
    ],
)
def test_mfu(mfu, band):
    assert judged(maximum=0.8, mfu=mfu) == {"mfu": band}


def test_where_nobody_measured_a_maximum_it_is_the_peak():
    assert judged(mfu=0.99) == {"mfu": "excellent"}
    assert judged(mfu=1.01) == {"mfu": "impossible"}


def test_bands_above_what_a_device_reaches_are_empty():
    found = bands_of({"mfu": 0.44}, reference_dtype="bf16", maximum=0.4)["mfu"]
    assert found["band"] == "impossible"
    assert found["limits"] == {
        "typical": 0.2,
        "good": 0.35,
        "excellent": 0.4,
        "impossible": 0.4,
    }


def test_an_entry_says_its_value_its_limits_and_its_source():
    found = bands_of({"load_balance": 0.8}, reference_dtype=None, maximum=None)
    source = found["load_balance"].pop("source")
    assert source.startswith("POP")
    assert found == {"load_balance": {"value": 0.8, "band": "good", "limits": {"good": 0.8}}}


@pytest.mark.parametrize(
    ("ratio", "band"),
    [(0.0, "good"), (0.0999, "good"), (0.1, "typical"), (0.2499, "typical"), (0.25, "poor")],
)
def test_of_exposed_communication_less_is_better(ratio, band):
    assert judged(exposed_comm_ratio=ratio) == {"exposed_comm_ratio": band}


def test_what_is_unknown_or_meant_for_another_type_is_not_judged():
    assert judged(mfu=None, transfer=0.79, unheard_of=1.0) == {"transfer": "poor"}
    assert judged(dtype="fp32", mfu=0.5) == {}
    assert judged(dtype=None, mfu=0.5) == {}


def test_every_band_has_a_source():
    assert set(bands()) == {
        *("mfu", "load_balance", "serialization", "transfer", "parallel_efficiency"),
        "exposed_comm_ratio",
    }
    assert all(band.source for band in bands().values())
    assert bands()["exposed_comm_ratio"].limit("poor") == 0.25


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"limits": (0.5, 0.6)}, "one limit for each band but the first"),
        ({"bands": ("poor", "typical", "good"), "limits": (0.5, 0.5)}, "must rise"),
        ({"limits": (1.5,)}, "< 1.0"),
        ({"bands": ("poor", "superb")}, "superb"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_table_that_cannot_be_is_refused(fields, message):
    entry = {"name": "x", "bands": ("poor", "good"), "limits": (0.5,), "source": "s", **fields}
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(entry, Band)


def test_of_a_run(make):
    """MFU 0.3 of an H100, whose fastest products reach 80.3 % of the peak; no collective."""
    step = make.step(
        1, make.times(compute=500, idle=500), make.work(flop=300 * 989_400), counted=500
    )
    digest = make.digest(0, make.device(step))
    found = make.report(digest).bands
    assert found.keys() == {"mfu"}
    assert (found["mfu"]["value"], found["mfu"]["band"]) == (pytest.approx(0.3), "typical")
    assert found["mfu"]["limits"]["impossible"] == pytest.approx(794.5 / 989.4)
    # against the fastest products it is another number, which the bands are not meant for
    assert make.report(digest, ceiling="mamf").bands == {}
