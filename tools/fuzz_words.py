"""What the fuzzer puts where a number, text or key of a trace is: odd ones, and known ones."""

from __future__ import annotations

__all__ = ["KEYS", "NUMBERS", "TEXTS", "WORDS"]

# at the edges of int64, uint64 and of what a double holds; words and text where numbers belong
NUMBERS = (
    *b"0 -0 -1 1 1e-999 1e999 -1e999 1E5 0.0005 0.0015 -0.0 007 1. .5 +1 4.6e15".split(),
    *b"9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775809".split(),
    *b"18446744073709551615 18446744073709551616 9223372036854775.807 4294967295".split(),
    *b"1e99999999999 1_000 0x1F NaN nan inf Infinity -Infinity N/A None null true".split(),
    *b'"12" "0x10" "1e3" "12abc" "" "1_000" [1] [[[1]]] {} {"a":1}'.split(),
    *(b"", b"1 2", b'" 5 "', b'"\xd9\xa1\xd9\xa2"', b"1" * 400, b"0." + b"3" * 400),
)

# quotes, escapes, bytes that are no text, text that some output would interpret
TEXTS = (
    *(b'a "q" b', b'a\\"b', b"C:\\new\\x.py", b"\\", b"\\u", b"\\x", b"\\u0000", b"\\n"),
    *(b"\\ud800", b"\\udc00\\ud800", b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80"),
    *(b"\x00", b"\n", b"\r\n", b"\t", b"\x1b[31m", b"\xc2\x9b31m", b"\x7f"),
    *(b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xf0\x9f\x94\xa5"),
    *(b"<script>alert(1)</script>", b"{{ 7 * 7 }}", b"{% x %}", b"[red]x[/red]", b"[/]"),
    *(b"=1+1", b"|a|b|", b"%s%n", b"../../etc/passwd", b"/dev/zero", b"x" * 5000),
    *(b"ProfilerStep#", b"ProfilerStep#-1", b"ProfilerStep#3", b"ProfilerStep#" + b"9" * 20),
    *(b"},\n  {", b"\n  },\n  {\n", b'"traceEvents": [', b"{}", b"]}"),
    *(b"cpu", b"none", b"unknown", b"", b" ", b"0", b"CPU functions", b"CUDA functions"),
)

# phases, categories and names that mean something
WORDS = (
    *b"X M i C B E s t f kernel Kernel gpu_memcpy gpu_memset Memcpy cuda_runtime".split(),
    *b"cuda_driver cpu_op Operator user_annotation gpu_user_annotation overhead".split(),
    *b"python_function cuda_sync mtia_ccp_events event_wait dma_request Trace".split(),
    *b"gloo:all_reduce mpi:send c10d::allreduce_ record_param_comms aten::mm".split(),
    *b"ncclDevKernel_AllReduce_Sum_f32_RING_LL cudaLaunchKernel cudaGraphLaunch".split(),
    b"Record Window End",
)

KEYS = (
    *b"ph cat name pid tid ts dur args correlation device stream rank world_size".split(),
    *b"backend traceEvents distributedInfo baseTimeNanoseconds deviceProperties".split(),
    *b"schemaVersion traceName nodes schema pg_config host_name trace_id finished".split(),
    *b"INFO segments device_traces \\u0070h generator schema_version".split(),
    *(b"External id", b"external id", b"Collective name", b""),
)
