"""Other processes give the results that this one would, in order; they never outlive it."""

import os
import subprocess
import sys

import psutil
import pytest

from nmt.data.preparation.worker_pool import map_in_order
from nmt.errors import UserError
from tests.conftest import program_environment
from tests.data.preparation.tasks import Die, Fail, Square


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order_from_as_many_processes_as_asked_for(workers: int) -> None:
    found = list(map_in_order(Square(), range(23), workers))
    assert [square for square, _ in found] == [n * n for n in range(23)]
    processes = {process for _, process in found}
    assert (processes == {os.getpid()}) == (workers == 1)
    assert len(processes) <= workers


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_there_is_an_error_here(workers: int) -> None:
    with pytest.raises(UserError, match="seven"):
        list(map_in_order(Fail(), range(20), workers))


def test_a_worker_that_dies_is_said() -> None:
    with pytest.raises(UserError, match="worker process has ended"):
        list(map_in_order(Die(), range(20), 2))


def test_no_worker_is_left_when_the_results_are_not_wanted_any_more() -> None:
    before = psutil.Process().children()
    results = map_in_order(Square(), range(100), 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert psutil.Process().children() == before


def test_workers_end_with_a_parent_that_is_killed() -> None:
    program = (
        "import time\nfrom nmt.data.preparation.worker_pool import map_in_order\n"
        "from nmt.data.cleaning import looks_tokenised\n"
        "for _ in map_in_order(looks_tokenised, 'abcdefghi', 2):\n"
        "    print('started', flush=True)\n    time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=program_environment())
    assert parent.stdout is not None
    parent.stdout.readline()
    workers = psutil.Process(parent.pid).children()
    assert workers
    parent.kill()
    parent.wait()
    _gone, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive
