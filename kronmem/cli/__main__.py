"""`python -m kronmem.cli` is the `kronmem` command."""

from kronmem.cli import main

if __name__ == "__main__":
    main()
