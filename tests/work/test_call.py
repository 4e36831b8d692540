"""Whatever a trace says of a call is read as what it is, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.work import Call, NotKnownError, Work, formulas, work_of


def _call(*, dims=(), types=(), concrete=()) -> Call:
    return Call("aten::mm", dims=dims, types=types, concrete=concrete)


@pytest.mark.parametrize(
    "dims", [[], None, "12", [[1]], [-1], [1.0], [True], [2**63], ["3"], [1] * 17, 7, {}]
)
def test_what_is_no_shape_has_none(dims):
    with pytest.raises(NotKnownError, match=r"^input 0 has no shape$"):
        _call(dims=[dims]).shape(0)


@pytest.mark.parametrize("inputs", [[], (), None, 3, {}, "", "[[1]]"])
def test_nothing_recorded_says_so(inputs):
    call = Call("aten::convolution", inputs, inputs, inputs)
    assert work_of(call) == Work(
        unknown="no shapes were recorded: profile with record_shapes=True"
    )
    for read in (call.flag, call.flags, call.number, lambda at: call.wholes(at, 2, least=0)):
        if not inputs:
            with pytest.raises(NotKnownError, match=r"^no values of arguments were recorded$"):
                read(0)
    assert call.type_of(0) == ""
    assert not call.is_given(0)


def test_a_product_needs_no_values_of_arguments():
    types = ["float"] * 3
    work = work_of(Call("aten::addmm", [[4], [2, 3], [3, 4], [], []], types))
    assert work is not None
    assert (work.flop, work.least_bytes) == (48, 4 * (6 + 12 + 8))


def test_a_shape_and_its_rank():
    call = _call(dims=[[2, 0, 2**63 - 1]])
    assert call.shape(0) == call.shape(0, 2, 3) == (2, 0, 2**63 - 1)
    with pytest.raises(NotKnownError, match=r"^input 0 has 3 dimensions instead of 2 or 4$"):
        call.shape(0, 2, 4)
    with pytest.raises(NotKnownError, match=r"^input 1 has no shape$"):
        call.shape(1)


def test_shapes_of_a_list_of_tensors():
    call = _call(dims=[[[2, 3], [4]], [5], [[1], "x"], 3, [[1]] * 17, [], [[], [2]]])
    assert call.shapes(0) == ((2, 3), (4,))
    assert call.shapes(1) == ((5,),)
    assert call.shapes(5) == ()
    assert call.shapes(6) == ((), (2,))  # a number has no sizes
    assert _call(dims=[[[1]] * 16]).shapes(0) == ((1,),) * 16
    for position in (2, 3, 4, 7):
        with pytest.raises(NotKnownError, match=rf"^input {position} is no list of shapes$"):
            call.shapes(position)


def test_what_was_given():
    call = _call(dims=[[2], []])
    assert [call.is_given(position) for position in range(3)] == [True, False, False]


def test_types():
    call = _call(types=["float", 3, "x" * 500])
    assert [call.type_of(position) for position in range(4)] == ["float", "", "", ""]


@pytest.mark.parametrize(
    ("text", "flag"), [("True", True), ("False", False), ("1", True), ("0", False)]
)
def test_flags(text, flag):
    assert _call(concrete=[text]).flag(0) is flag
    assert _call(concrete=[f"[{text}, True]"]).flags(0) == (flag, True)


@pytest.mark.parametrize("text", ["", "None", "2", "TRUE", "[True]", "__import__('os')"])
def test_what_is_no_flag(text):
    with pytest.raises(NotKnownError, match=r"^argument 0 is no flag$"):
        _call(concrete=[text]).flag(0)


@pytest.mark.parametrize("text", ["[]", "[2]", "[True, ]", "[True, no]"])
def test_what_is_no_list_of_flags(text):
    with pytest.raises(NotKnownError, match=r"^argument 0 is no list of flags$"):
        _call(concrete=[text]).flags(0)


@pytest.mark.parametrize(
    ("text", "number"), [("", None), ("None", None), (" 12 ", 12), ("-1", -1), ("+3", 3)]
)
def test_whole_numbers(text, number):
    assert _call(concrete=[text]).whole(0) == number


@pytest.mark.parametrize("text", ["1.5", "1e3", "inf", "nan", "٣", "1" * 20, "1_0", "0x1"])
def test_what_is_no_whole_number(text):
    with pytest.raises(NotKnownError, match=r"^argument 0 is no whole number$"):
        _call(concrete=[text]).whole(0)


def test_a_number_that_every_call_has():
    assert _call(concrete=["4"]).number(0) == 4
    with pytest.raises(NotKnownError, match=r"^argument 1 is not recorded$"):
        _call(concrete=["4"]).number(1)


def test_one_number_stands_for_all():
    assert _call(concrete=["[2]"]).wholes(0, 3, least=1) == (2, 2, 2)
    assert _call(concrete=["[2, 3]"]).wholes(0, 2, least=1) == (2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not recorded as a list"),
        ("2", "is not recorded as a list"),
        ("[2", "is not recorded as a list"),
        ("[]", "is no list of whole numbers"),
        ("[1, x]", "is no list of whole numbers"),
        ("[1, 2, 3]", "does not fit the shapes"),
        ("[1, 0]", "does not fit the shapes"),
        (f"[{'1,' * 16}1]", "is too long a list"),
    ],
)
def test_what_is_no_list_of_whole_numbers(text, message):
    with pytest.raises(NotKnownError, match=rf"^argument 0 {message}$"):
        _call(concrete=[text]).wholes(0, 2, least=1)


@pytest.mark.parametrize("text", ["", "0", "0.", "0.0", "-0", ".0", "0e0", "0.E+00"])
def test_zero_or_not_recorded(text):
    assert not _call(concrete=[text]).is_nonzero(0)


@pytest.mark.parametrize("text", ["1", "0.5", "nan", "1e-9", "-1.", ".", "e0"])
def test_not_zero(text):
    assert _call(concrete=[text]).is_nonzero(0)


@pytest.mark.parametrize("text", [5, None, ["1"], "1" * 401])
def test_a_text_that_cannot_be_read(text):
    with pytest.raises(NotKnownError, match=r"^argument 0 cannot be read$"):
        _call(concrete=[text]).whole(0)


_SIZE = st.integers(0, 9) | st.integers() | st.none() | st.text(max_size=2)
_DIMS = st.lists(_SIZE, max_size=6) | st.lists(st.lists(_SIZE, max_size=5), max_size=3)
_TYPES = st.sampled_from(["float", "c10::BFloat16", "c10::Float4_e2m1fn_x2", "", "Scalar"])
_TEXTS = (
    st.sampled_from(["", "True", "False", "0", "1", "[1, 1]", "[0]", "[True, True, False]"])
    | st.text(max_size=8)
    | st.integers()
)


@given(
    name=st.sampled_from(sorted(formulas())),
    dims=st.lists(_DIMS | st.none() | st.integers(), max_size=20),
    types=st.lists(_TYPES | st.none(), max_size=20),
    concrete=st.lists(_TEXTS, max_size=20),
)
def test_any_record_gives_work_or_a_reason(name, dims, types, concrete):
    work = work_of(Call(name, dims, types, concrete))
    assert work is not None
    if work.unknown is None:
        _check(work)
    else:
        assert work == Work(unknown=work.unknown)


def _check(work: Work) -> None:
    numbers = (work.lowest_flop, work.flop, work.highest_flop)
    assert all(type(number) is int for number in numbers)
    assert sorted(numbers) == list(numbers)  # type: ignore[type-var]
    assert 0 <= (work.recompute_flop or 0) <= (work.flop or 0) < 2**63
    assert work.dtype in {"fp64", "fp32", "bf16", "fp16", "fp8", "fp4", "int8"}
    assert (work.least_bytes or 0) >= 0
