"""The virtual environment that the peers live in, outside the tree."""

import os
import subprocess
import sys
from pathlib import Path

PACKAGES = ("numpy", "onnxruntime", "openvino", "ncnn", "MNN")


def default_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "polyphase" / "peers"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def has(python: Path, package: str) -> bool:
    probe = "import importlib.metadata, sys; importlib.metadata.version(" \
            "sys.argv[1])"
    return subprocess.run([python, "-c", probe, package],
                          capture_output=True).returncode == 0


def prepare(folder: Path) -> Path:
    """Makes the environment, or completes it. A package that cannot be
    installed is left out. Returns its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        say(f"making {folder}")
        made = subprocess.run([sys.executable, "-m", "venv", folder])
        if made.returncode:
            raise SystemExit("python3 -m venv failed (Debian: python3-venv)")
    for package in PACKAGES:
        if has(python, package):
            continue
        say(f"installing {package}")
        done = subprocess.run(
            [python, "-m", "pip", "install", "--quiet",
             "--disable-pip-version-check", package],
            stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no reason given"]
            say(f"{package} is left out: {lines[-1]}")
    return python


def enter(folder: Path) -> None:
    """Goes on as the environment's Python, in place of this process."""
    if Path(sys.prefix).resolve() != folder.resolve():
        python = prepare(folder)
        os.execv(python, [str(python), *sys.argv])
