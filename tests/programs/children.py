"""A child process that sleeps, then a sleep of its own: half of the wall time each."""
import subprocess
import time

subprocess.run(["sleep", "0.2"], check=True)
time.sleep(0.2)
