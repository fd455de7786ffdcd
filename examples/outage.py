"""A service dies, the agent goes on remembering, the service comes back: everything arrives, once and in order.

Needs the extras `server` and `cli`:  pip install 'kronmem[server,cli]'
"""

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kronmem import Client

home = Path(tempfile.mkdtemp())
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]


def serve() -> subprocess.Popen:
    """Start `kronmem serve` in a process of its own and wait until it answers."""
    command = [sys.executable, "-m", "kronmem", "serve", "--quiet", "--port", str(port)]
    process = subprocess.Popen([*command, "--db", f"sqlite:///{home / 'memory.db'}"], stdout=subprocess.DEVNULL)
    while not client.health().ok:
        time.sleep(0.05)
    return process


client = Client(f"http://127.0.0.1:{port}", outbox=home / "outbox.db", timeout=2.0)
service = serve()
print("stored while the service is up:", not client.remember("assistant", "Note 0 from before").queued)

service.kill()
service.wait()
print("the service is dead")
for number in range(1, 4):
    client.remember_later("assistant", f"Note {number} from the outage")
print("remember says queued:", client.remember("assistant", "Note 4 from the outage").queued)
print("waiting in the outbox:", client.outbox.pending())

service = serve()
print("the service is back; left after a flush:", client.outbox.flush(30.0))
for memory in reversed(list(client.memories("assistant"))):  # listed newest first
    print("-", memory.content)

client.close()
service.kill()
service.wait()
