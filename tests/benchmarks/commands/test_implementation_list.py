"""The list of implementations: docs/implementations.md is what the verb prints, and has every name once."""

import re
import subprocess
import sys
from pathlib import Path

import impls
from benchmarks.commands import implementation_list
from benchmarks.harness import cell

ROOT = Path(__file__).parents[3]


def test_the_page_is_what_the_verb_prints():
    """Where this fails: python -m benchmarks implementations > docs/implementations.md"""
    command = [sys.executable, "-m", "benchmarks", "implementations"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert (ROOT / "docs" / "implementations.md").read_text(encoding="utf-8") == done.stdout


def test_each_operation_has_its_implementations():
    sections = re.split(r"^## ", implementation_list.markdown(), flags=re.MULTILINE)[1:]
    listed = {section.partition("\n")[0]: re.findall(r"^\| `(\S+)` \|", section, re.MULTILINE) for section in sections}
    assert listed == {operation: impls.names(operation) for operation in cell.TASKS}


def test_a_row_has_what_the_file_declares():
    lines = implementation_list.markdown().splitlines()
    assert "| `cpu.torch` | cpu | library | torch.nn.functional.conv2d |" in lines
    assert "| `cpu.torch_compile` | cpu | library | torch.compile of torch.nn.functional.conv2d (on request) |" in lines
