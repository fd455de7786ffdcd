"""Every example of the pack runs as a user would run it, and prints what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PRINTED = {
    "assistant_with_memory": """\
-- monday, a process of its own
user: I am allergic to peanuts.
assistant: I will keep that in mind.
-- tuesday, a process of its own
user: Is Ada allergic to anything?
recalled: Ada is allergic to peanuts
assistant: Yes, to peanuts.
""",
    "shared_team": """\
user: When is the launch? We decided to send invitations by post.
planner: The date is in our memory now.
writer: ['The launch is on the 12th of May']
writer: Save the date!
planner: Noted for myself.
writer: 12th of May it is.
facts kept of the run: 1
team-7: ['The launch is on the 12th of May', 'We decided to send invitations by post.']
team-7.planner: ['I doubt the launch date in May']
""",
    "declarative_team": """\
-- write, a process of its own
components of kronmem in the file: 4
-- load, a process of its own
user: How shall I send the invoices?
clerk: ['The customer wants invoices as PDF']
clerk: I will send a PDF.
""",
    "persisted_team": """\
-- process 1
  the model sees 0 answer(s) of its own, the task is: Collect the numbers
finished: Collect the numbers
  the model sees 1 answer(s) of its own, the task is: Draft the report
-- killed half-way
-- process 2
  the model sees 1 answer(s) of its own, the task is: Draft the report
finished: Draft the report
  the model sees 2 answer(s) of its own, the task is: Send the report
finished: Send the report
""",
    "swarm": """\
-- monday
user: Good morning, I am Ada, and I am allergic to peanuts.
reception: Welcome, Ada!
-- tuesday, new agents
user: Can I have rice with peanut sauce?
  (reception is shown: I am Ada, and I am allergic to peanuts.)
reception: Transferred to cook, adopting the role of cook immediately.
  (cook is shown: I am Ada, and I am allergic to peanuts.)
cook: Rice and vegetables, no satay.
""",
}


def start(name: str, home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "KRONMEM_HOME": str(home), "PYTHONPATH": str(ROOT)},
        cwd=home,
    )


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, subprocess.Popen[str]]:
    """All of them side by side: most of their time is importing AutoGen."""
    return {name: start(name, tmp_path_factory.mktemp(name)) for name in PRINTED}


@pytest.mark.slow  # importing AutoGen in ten processes
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_promises(name: str, started: dict[str, subprocess.Popen[str]]) -> None:
    with started[name] as example:
        printed, complained = example.communicate()
    assert example.returncode == 0, complained
    assert printed == PRINTED[name], complained
