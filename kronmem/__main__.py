"""`python -m kronmem`: the kronmem command."""

from kronmem.cli import main

main()
