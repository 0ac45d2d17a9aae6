"""A small demo, made once: it renders, embeds and calibrates like the large one."""

import pytest

from holue.demo.demo import Demo, make_demo


@pytest.fixture(scope="session")
def small_demo() -> Demo:
    for package in ("matplotlib", "PIL", "onnxruntime", "jinja2"):
        pytest.importorskip(package)
    return make_demo(seed=1, subjects=60)
