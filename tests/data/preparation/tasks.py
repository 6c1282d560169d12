"""Work for the processes of test_worker_pool: here, where they import nothing that takes seconds."""

import os

from nmt.errors import UserError


class Square:
    def __call__(self, number: int) -> tuple[int, int]:
        return number * number, os.getpid()


class Fail:
    def __call__(self, number: int) -> int:
        if number == 7:
            raise UserError("seven")
        return number


class Die:
    def __call__(self, number: int) -> int:
        os._exit(3)
