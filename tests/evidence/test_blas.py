from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from holue.evidence.threads.blas import single_threaded


def blas_threads() -> set[int]:
    """Threads of numpy's own BLAS; other packages bring libraries that a scan does not call."""
    np.zeros((2, 2)) @ np.zeros((2, 2))
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas" and "numpy" in lib["filepath"]}


def test_the_last_of_several_holders_gives_the_threads_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with single_threaded():
            with single_threaded():
                pass
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_threads_are_given_back_after_an_error_and_after_concurrent_use() -> None:
    def hold(number: int) -> None:
        with single_threaded():
            assert blas_threads() == {1}

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError), single_threaded():
            raise ZeroDivisionError
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(hold, range(40)))
        assert blas_threads() == before
