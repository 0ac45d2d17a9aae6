"""Full disks, closed pipes, ASCII terminals and Ctrl-C end a command in one line, and nothing is left or lost."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

import holue as package
from holue.cli.app import Commands
from holue.cli.inputs import WRITTEN, check_inputs, keep_galleries, keep_inputs
from holue.errors import InvalidFileError

HERE = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}  # also from another working directory
READ = {
    *("file", "folder", "directory", "inputs", "runs", "remarks", "measured", "images", "head", "like", "probes"),
    *("config", "tls_cert", "tls_key", "data", "lists", "embeddings", "dev_embeddings"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), 5)
    rows = rng.normal(size=(60, 16))[who] + 0.5 * rng.normal(size=(300, 16))
    np.savez(folder / "f.npz", embeddings=rows, subject_id=[f"é{i}" for i in who])
    assert holue(folder, "split", "f.npz", "d").returncode == 0
    return folder


def holue(folder: Path, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holue", *words]
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": HERE, **options}
    return subprocess.run(command, cwd=folder, text=True, **settings)  # type: ignore[call-overload]


def is_one_line(text: str) -> bool:
    return text.startswith("error: ") and text.count("\n") == 1


@pytest.mark.parametrize("name", list(Commands.lazy))
def test_every_path_of_a_command_is_known_as_read_or_written(name: str) -> None:
    command = Commands.lazy[name].command(name)
    several = [command] if not hasattr(command, "commands") else list(command.commands.values())
    hints = {key: hint for one in several for key, hint in get_type_hints(one.callback).items()}
    paths = {key for key, hint in hints.items() if "Path" in str(hint)}
    assert paths <= READ | set(WRITTEN) | {"cache", "checkpoints"}, "say in holue.cli.inputs what it is"


@pytest.mark.parametrize("link", ["itself", "relative", "symbolic link", "hard link"])
@pytest.mark.parametrize("written", WRITTEN)
def test_an_input_is_never_an_output_under_any_name(tmp_path: Path, written: str, link: str) -> None:
    file = tmp_path / "f.npz"
    file.write_bytes(b"years of work")
    other = tmp_path / "other.npz"
    match link:
        case "itself":
            other = file
        case "relative":
            other = Path(os.path.relpath(file))
        case "symbolic link":
            other.symlink_to(file)
        case "hard link":
            other.hardlink_to(file)
    for parameters in ({"file": file, written: other}, {"inputs": [tmp_path / "x", file], written: other}):
        with pytest.raises(InvalidFileError, match="is the input"):
            check_inputs(parameters)
    check_inputs({"file": file, written: tmp_path / "new.npz"})


def test_no_result_is_written_into_a_gallery(world: Path) -> None:
    for words in (("create", "office", "--like", "f.npz"), ("enroll", "office", "f.npz")):
        assert holue(world, *words).returncode == 0
    kept = (world / "office" / "gallery.db").read_bytes()
    for html, said in (("office/audit.html", "is in the gallery office"), ("office/gallery.db", "is in the gallery")):
        told = holue(world, "audit", "f.npz", "--html", html)
        assert told.returncode == 2
        assert said in told.stderr
    told = holue(world, "log", "office", "--verify", "--export", "office/gallery.db")
    assert "is a file of the input office" in told.stderr
    assert (world / "office" / "gallery.db").read_bytes() == kept
    for inside in ("office", "office/segments/x.csv", "office/snapshots/a/b"):
        with pytest.raises(InvalidFileError, match="choose a place outside it"):
            keep_galleries(world / inside)
    keep_galleries(world / "answers.csv")
    refused = holue(world, "audit", "f.npz", "--html", "page.npz")
    assert "the name of a page ends in .html" in refused.stderr


def test_a_file_of_an_input_folder_and_a_folder_around_an_input_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "results.json").write_text("{}")
    with pytest.raises(InvalidFileError, match="is a file of the input"):
        keep_inputs(tmp_path / "in" / "results.json", [tmp_path / "in"])
    with pytest.raises(InvalidFileError, match="holds the input"):
        keep_inputs(tmp_path, [tmp_path / "in"], is_replaced=True)
    keep_inputs(tmp_path / "in" / "new", [tmp_path / "in"])
    keep_inputs(tmp_path, [tmp_path / "in"])


def test_a_page_over_the_file_it_is_about_is_refused(world: Path) -> None:
    before = (world / "f.npz").read_bytes()
    done = holue(world, "audit", "f.npz", "--html", "../" + world.name + "/f.npz")
    assert (done.returncode, is_one_line(done.stderr)) == (2, True), done.stderr
    assert (world / "f.npz").read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "f.npz", "--html", "/proc/a.html"),
        ("audit", "f.npz", "--html", "/dev/full"),
        ("split", "f.npz", "/proc/d"),
        ("figures", "--out", "/proc/figures"),
        ("gallery-growth", "f.npz", "--first", "20", "--out", "/proc/figures"),
        ("evaluate", "d", "--methods", "galue", "--fpir", "0.2", "--resamples", "10", "--report", "/proc/report"),
    ],
    ids=lambda words: " ".join(words[:1]),
)
def test_a_place_that_cannot_be_written_is_one_line(world: Path, words: tuple[str, ...]) -> None:
    done = holue(world, *words)
    assert (done.returncode, is_one_line(done.stderr)) == (2, True), done.stderr


SHORT = [
    ("audit", "f.npz"),
    ("trust", "d", "--target", "0.3"),
    ("gallery-growth", "f.npz", "--first", "20"),
    ("figures",),
    ("--help",),
]


@pytest.mark.parametrize("words", SHORT, ids=" ".join)
def test_a_full_output_is_one_line_and_a_closed_one_is_silent(world: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = holue(world, *words, stdout=full)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = holue(world, *words, stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("words", SHORT, ids=" ".join)
def test_an_ascii_terminal_shows_everything_and_json_keeps_it(world: Path, words: tuple[str, ...]) -> None:
    env = {**HERE, "PYTHONIOENCODING": "ascii", "LANG": "C"}
    done = holue(world, *words, env=env)
    assert done.stderr == ""
    assert done.stdout.isascii()
    if words != ("--help",):
        for encoding in ("ascii", "utf-8"):
            told = holue(world, *words, "--json", env=env | {"PYTHONIOENCODING": encoding}, encoding="utf-8")
            json.loads(told.stdout)


@pytest.mark.parametrize("delay", [0.2, 1.5, 4.0])
@pytest.mark.parametrize(
    "words",
    [
        ("evaluate", "d", "--resamples", "100000", "--report", "report"),
        ("demo", "--out", "demo"),
        ("bench", "--quick", "--out", "b.json"),
    ],
    ids=lambda words: words[0],
)
def test_an_interrupt_is_exit_code_130_without_a_traceback_or_leftovers(
    world: Path, words: tuple[str, ...], delay: float
) -> None:
    before = sorted(os.listdir(world))
    start = "from holue.cli import main; print('started', flush=True); main()"  # before that Python itself is starting
    command = [sys.executable, "-c", start, *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=world, text=True, env=HERE, **pipes)  # type: ignore[call-overload]
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(delay)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    printed, told = process.communicate(timeout=120)
    assert printed == ""
    assert "Traceback" not in told
    assert all("/" in line for line in told.splitlines()), "at most the state of a progress bar"
    assert process.returncode == 130
    assert [name for name in sorted(os.listdir(world)) if name != "b.json"] == before
