"""Jobs as subprocesses: order, failures, interruption. Jobs are one-line Python programs."""

import os
import signal
import sys
import threading
import time

import pytest

from nmt.progress import format_duration
from nmt.study.jobs import Job, JobStep, child_environment, last_log_line, run_jobs


def job(folder, name, *programs):
    steps = tuple(JobStep(f"step {number}", (sys.executable, "-c", text)) for number, text in enumerate(programs, 1))
    return Job(name, steps, folder / "logs" / f"{name}.log")


def run(jobs, at_once=2):
    return run_jobs(jobs, at_once, child_environment(threads=3))


def test_steps_of_a_job_follow_each_other_and_both_are_in_its_log(tmp_path):
    assert run([job(tmp_path, "a", "print('first')", "print('second')")]) == {}
    lines = (tmp_path / "logs" / "a.log").read_text().splitlines()
    assert [line for line in lines if not line.startswith("$ ")] == ["first", "second"]


def test_a_failed_job_says_its_last_line_and_does_not_stop_the_others(tmp_path, capsys):
    jobs = [
        job(tmp_path, "bad", "import sys; print('begun'); sys.exit('error: no such file x')", "open('never', 'w')"),
        job(tmp_path, "good", "print('well')"),
    ]
    assert run(jobs, at_once=1) == {"bad": "step 1 failed: error: no such file x"}
    said = capsys.readouterr().err
    assert "bad: step 1 failed: error: no such file x (log:" in said
    assert "good: done in 0:" in said


def test_a_job_that_fails_without_a_word_shows_its_exit_status(tmp_path):
    assert run([job(tmp_path, "mute", "raise SystemExit(7)")]) == {"mute": "step 1 failed: exit status 7"}


def test_no_more_jobs_run_than_allowed(tmp_path):
    count = (
        f"import os, time, pathlib; here = pathlib.Path({str(tmp_path / 'running')!r}) / str(os.getpid()); "
        "here.touch(); time.sleep(0.3); print(len(list(here.parent.iterdir()))); here.unlink()"
    )
    (tmp_path / "running").mkdir()
    jobs = [job(tmp_path, f"job{number}", count) for number in range(5)]
    run(jobs, at_once=2)
    assert {last_log_line(one.log) for one in jobs} <= {"1", "2"}


def test_children_get_the_asked_number_of_threads(tmp_path):
    one = job(tmp_path, "a", "import os; print(os.environ['OMP_NUM_THREADS'])")
    run([one])
    assert last_log_line(one.log) == "3"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_reaches_each_child_once_and_waits_for_its_checkpoint(tmp_path, number):
    text = (
        "import time\ntry:\n    print('ready', flush=True); time.sleep(30)\n"
        "except KeyboardInterrupt:\n    time.sleep(0.3); print('saved', flush=True); raise SystemExit(130)"
    )
    jobs = [job(tmp_path, name, text, "print('never')") for name in ("a", "b", "waiting")]

    def interrupt_when_ready():
        while not all(last_log_line(one.log) == "ready" for one in jobs[:2]):
            time.sleep(0.05)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt_when_ready)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(jobs)
    thread.join()
    assert [last_log_line(one.log) for one in jobs] == ["saved", "saved", ""]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_last_line_is_the_last_that_says_something(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"$ command\nfirst\n  10%\r  20%\r\n\n")
    assert last_log_line(log) == "20%"
    log.write_bytes(b"x" * 10_000 + b"\nlast \xff\n$ next command\n")
    assert last_log_line(log) == "last �"
    assert last_log_line(tmp_path / "absent") == ""


def test_plain_lines_tell_a_beginning_and_then_now_and_then(tmp_path, capsys):
    one = job(tmp_path, "a", "import time; print('half', flush=True); time.sleep(0.5)")
    run_jobs([one], 1, child_environment(1), line_every=0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "a: step 1"
    assert "a: step 1, 0:00: half" in lines
    assert lines[-1].startswith("a: done")


def test_seconds_are_shown_as_on_a_clock():
    assert [format_duration(5.4), format_duration(65), format_duration(3661)] == ["0:05", "1:05", "1:01:01"]
