# ruff: noqa: E501 - messages are what is tested

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.work.configs import LLAMA3_8B
from traceparse.errors import InputError, TraceparseError
from traceparse.work.model import Model
from traceparse.work.model_file import load_model

LLAMA = """
layers = 32
hidden = 4096
heads = 32
kv_heads = 8
ffn = 14336
vocab = 128256
gated_mlp = true
tied_embedding = false
"""


@pytest.fixture
def write(tmp_path):
    def written(text, name="model.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


@pytest.fixture
def refused(write):
    def text(content, name="model.toml"):
        path = write(content, name)
        with pytest.raises(InputError) as caught:
            load_model(path)
        assert "\n" not in str(caught.value)
        return str(caught.value).removeprefix(f"{path}: ")

    return text


def test_our_words_and_those_of_hugging_face_are_one_model(write):
    ours = load_model(write(LLAMA))
    theirs = load_model(write(json.dumps(LLAMA3_8B), "config.json"))
    assert ours == theirs
    assert ours.params == 8_030_261_248


def test_json_may_have_our_words(write):
    path = write('{"params": 8.03e9, "embedding_params": 0}', "Model.JSON")
    assert load_model(path) == Model(params=8_030_000_000, embedding_params=0)


def test_what_is_given_is_not_derived(write):
    model = load_model(write(LLAMA + "params = 8000000000\nseq = 8192"))
    assert model.params == 8_000_000_000
    assert model.seq == 8192
    assert model.is_given("params")
    assert not model.is_given("embedding_params")
    assert not model.is_given("active_params")
    assert model.derived == (
        "head_dim = 128: hidden / heads",
        "embedding_params = 525,336,576: vocab x hidden",
    )


def test_what_does_not_follow_stays_unknown(write):
    model = load_model(write("layers = 2\nhidden = 100\nheads = 3\nvocab = 7"))
    assert model.head_dim is None  # no quotient
    assert model.kv_heads == 3
    assert model.params is None
    assert model.embedding_params is None  # is it tied?


def test_experts_are_as_wide_as_the_mlp_unless_it_says_otherwise(write):
    text = LLAMA.replace("128256", "32000") + "experts = 8\nexperts_per_token = 2\n"
    assert load_model(write(text)).params == 46_702_792_704  # Mixtral 8x7B
    narrow = load_model(write(text + "moe_ffn = 1000"))
    assert narrow.params == 46_702_792_704 - 32 * 8 * 3 * 4096 * (14336 - 1000)
    assert narrow.is_given("moe_ffn")


def test_active_parameters_follow_from_given_ones(write):
    text = LLAMA + "experts = 8\nexperts_per_token = 2\nparams = 50000000000\n"
    idle = 32 * 6 * 3 * 4096 * 14336
    assert load_model(write(text)).active_params == 50_000_000_000 - idle


def test_latent_attention_in_our_words(write):
    model = load_model(
        write(
            LLAMA.replace("kv_heads = 8", "kv_lora_rank = 512\nrope_head_dim = 64")
            + "head_dim = 192\nv_head_dim = 128\nq_lora_rank = 1536"
        )
    )
    queries = 4096 * 1536 + 1536 + 1536 * 32 * 192
    keys = 4096 * (512 + 64) + 512 + 512 * 32 * (128 + 128)
    rest = 32 * 128 * 4096 + 3 * 4096 * 14336 + 2 * 4096
    assert model.params == 32 * (queries + keys + rest) + 4096 + 2 * 128256 * 4096
    assert model.kv_heads is None


def test_an_unknown_name_is_refused_with_those_that_are_known(refused):
    assert refused("layer = 3") == (
        "'layer' is no field of a model (a config.json of Hugging Face has a model_type); "
        "known are layers, hidden, heads, kv_heads, head_dim, v_head_dim, ffn, vocab, seq, "
        "params, embedding_params, position_params, active_params, gated_mlp, tied_embedding, "
        "is_causal, experts, experts_per_token, moe_ffn, shared_ffn, dense_layers, q_lora_rank, "
        "kv_lora_rank, rope_head_dim"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layers = 0", "layers is 0; write a whole number from 1 to 10^16"),
        ("layers = -3", "layers is -3; write a whole number from 1 to 10^16"),
        ("layers = 1.5", "layers is 1.5; write a whole number from 1 to 10^16"),
        ("layers = true", "layers is True; write a whole number from 1 to 10^16"),
        ("layers = nan", "layers is nan; write a whole number from 1 to 10^16"),
        ("params = 1e17", "params is 1e+17; write a whole number from 1 to 10^16"),
        ("layers = '32'", "layers is '32'; write a whole number from 1 to 10^16"),
        ("experts = -1", "experts is -1; write a whole number from 0 to 10^16"),
        ("gated_mlp = 1", "gated_mlp is 1; write true or false"),
        (
            f"vocab = '{'x' * 90}'",
            f"vocab is '{'x' * 59}...; write a whole number from 1 to 10^16",
        ),
        (
            "layers = 2\ndense_layers = 3",
            "dense_layers is 3, which is more than layers, 2; correct one of them",
        ),
        (
            "params = 2\nembedding_params = 3",
            "embedding_params is 3, which is more than params, 2; correct one of them",
        ),
        (
            "kv_lora_rank = 2",
            "kv_lora_rank is given and rope_head_dim is not; correct one of them",
        ),
    ],
)
def test_a_number_that_is_no_size_is_refused_by_name(refused, text, message):
    assert refused(text) == message


def test_an_endless_number_is_refused_too(refused):
    digits = "9" * 5000  # Python reads no more than 4,300 of them, and writes none from hex
    assert refused(f'{{"layers": {digits}}}', "model.json").startswith("no JSON: ")
    assert refused(f"layers = {digits}").startswith("no TOML: ")
    assert refused(f"layers = 0x{digits}") == (
        "layers is endless; write a whole number from 1 to 10^16"
    )


@pytest.mark.parametrize(
    ("name", "content", "start"),
    [
        ("model.yaml", "layers: 3", "neither .json nor .toml; give a Hugging Face config.json"),
        ("model.toml", "layers =", "no TOML: "),
        ("model.json", "{", "no JSON: "),
        ("model.json", "[" * 100_000, "no JSON: "),
        ("model.json", b'{"layers": "\xff"}', "no JSON: "),
        ("model.toml", b"\xff\xfe", "no TOML: "),
        ("model.json", "[1]", "no table of names and values; see `traceparse mfu --help`"),
        (
            "model.json",
            b" " * 4_000_001,
            "over 4,000,000 bytes, so no configuration; give the model's own",
        ),
    ],
)
def test_what_is_no_configuration_is_refused(refused, name, content, start):
    assert refused(content, name).startswith(start)


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    path = tmp_path / f"{'x' * 300}.toml"
    with pytest.raises(InputError) as caught:
        load_model(path)
    assert str(caught.value) == f"{path}: file name too long; give a file that can be read"


def test_what_is_no_file_is_refused(tmp_path):
    folder = tmp_path / "folder.json"
    folder.mkdir()
    for path, what in ((folder, "no file"), (tmp_path / "gone.toml", "no such file")):
        with pytest.raises(InputError) as caught:
            load_model(path)
        assert str(caught.value) == f"{path}: {what}; give the file itself, such as config.json"


KEYS = st.sampled_from([*LLAMA3_8B, "model_type", "layers", "experts", "kv_lora_rank", "ffn"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**17),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["llama", "vit", "deepseek_v3", "qwen3_moe", "bert"]),
    st.lists(st.integers(), max_size=2),
)


@given(st.one_of(st.binary(), st.dictionaries(KEYS, VALUES).map(json.dumps)))
def test_any_file_is_a_model_or_a_refusal(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "config.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        model = load_model(path)
    except TraceparseError as error:
        assert str(error).startswith(f"{path}: ")
        assert "\n" not in str(error)
    else:
        assert isinstance(model, Model)


@given(st.dictionaries(st.sampled_from(list(LLAMA3_8B)[1:]), st.integers(-1, 10**16)))
def test_any_numbers_of_an_architecture_are_a_model_or_a_refusal(tmp_path_factory, changes):
    path = tmp_path_factory.mktemp("any") / "config.json"
    path.write_text(json.dumps(LLAMA3_8B | changes))
    try:
        model = load_model(path)
    except InputError as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert model.params is not None
        assert model.params > (model.embedding_params or 0)
