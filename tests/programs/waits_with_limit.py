"""Runs a program twenty times and waits for it with a limit: Python then looks for its end between sleeps."""
import subprocess

for _ in range(20):
    subprocess.Popen(["sleep", "0.07"]).wait(timeout=10)
