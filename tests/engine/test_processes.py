from __future__ import annotations

import multiprocessing
import os
import signal
import threading

import pytest

from traceparse.engine import processes
from traceparse.engine.processes import answers
from traceparse.errors import TraceparseError


def shout(task, tell):
    tell(b"about " + task)
    return task.upper()


def die(task, _tell):
    if task == b"die":
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def fail(_task, _tell):
    raise ZeroDivisionError


def server(_task, _tell):
    return str(os.getppid()).encode()


def asked(work, tasks, num=2):
    told: list[bytes] = []
    found = dict(answers(work, tasks, num=num, told=told.append))
    return found, told


@pytest.mark.slow
def test_every_task_is_answered_once():
    tasks = [b"%c" % (97 + n) for n in range(9)]
    found, told = asked(shout, tasks, num=3)
    assert found == {place: task.upper() for place, task in enumerate(tasks)}
    assert sorted(told) == [b"about " + task for task in tasks]
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_one_that_is_killed_ends_all():
    with pytest.raises(TraceparseError, match=r"was killed .*; try again with --jobs 1"):
        asked(die, [b"a", b"die", b"b"])
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_one_that_fails_ends_all():
    with pytest.raises(TraceparseError, match="failed, as it says above"):
        asked(fail, [b"a", b"b"])
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_one_that_is_gone_before_it_is_asked():
    running = answers(die, [b"a", b"b", b"c"], num=1, told=lambda _: None)
    assert next(running) == (0, b"a")
    (process,) = multiprocessing.active_children()
    process.kill()
    process.join()
    with pytest.raises(TraceparseError, match="was killed"):
        list(running)


@pytest.mark.slow
def test_nobody_is_left_when_the_answers_are_not_wanted():
    running = answers(shout, [b"a", b"b"], num=2, told=lambda _: None)
    next(running)
    assert len(multiprocessing.active_children()) == 2
    running.close()
    assert multiprocessing.active_children() == []


def in_a_process(feed):
    """Run here what a process runs, while a thread feeds it."""
    ours, theirs = multiprocessing.Pipe()
    handler = signal.getsignal(signal.SIGINT)
    feeder = threading.Thread(target=feed, args=(ours,))
    feeder.start()
    try:
        processes._answer(theirs, shout)
    finally:
        signal.signal(signal.SIGINT, handler)
        feeder.join()
        theirs.close()


def test_it_answers_until_nobody_asks():
    heard: list[bytes] = []

    def feed(connection):
        for task in (b"x", b"y"):
            connection.send_bytes(task)
            heard.extend(connection.recv_bytes() for _ in range(2))
        connection.close()

    in_a_process(feed)
    assert heard == [b"+about x", b"=X", b"+about y", b"=Y"]


def test_it_ends_when_the_one_who_asked_is_gone():
    def feed(connection):
        connection.send_bytes(b"x")
        connection.close()

    in_a_process(feed)


@pytest.mark.slow
@pytest.mark.skipif(not processes._HAS_SERVER, reason="each is started on its own")
def test_what_they_are_forked_from_ends_when_told_and_starts_anew():
    before, _ = asked(server, [b""])
    processes.end_server()
    with pytest.raises(ProcessLookupError):
        os.kill(int(before[0]), 0)
    processes.end_server()
    after, _ = asked(server, [b""])
    assert after != before


def test_signals_are_held_and_then_come():
    came = []
    before = signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
    try:
        with processes.held(signal.SIGUSR1):
            # other threads of this process, such as numpy's, would take one that is for all
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
            assert came == []
        assert came == [1]
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("given", [None, "3"])
def test_the_environment_stays_as_it_was(monkeypatch, given):
    name = "OPENBLAS_NUM_THREADS"
    monkeypatch.delenv(name, raising=False)
    if given:
        monkeypatch.setenv(name, given)
    with processes._one_thread():
        assert os.environ[name] == (given or "1")
    assert os.environ.get(name) == given


@pytest.mark.slow
def test_where_there_is_no_server_and_signals_cannot_be_held(monkeypatch):
    monkeypatch.setattr(processes, "_HAS_SERVER", False)
    monkeypatch.delattr(signal, "pthread_sigmask")
    processes.end_server()
    found, _ = asked(shout, [b"a", b"b"])
    assert found == {0: b"A", 1: b"B"}
