"""600 000 dicts that all stay: the cycle collector looks at them again and again. `off` turns it off."""
import gc
import sys

if "off" in sys.argv:
    gc.disable()
    gc.freeze()
rows = []
for i in range(600_000):
    rows.append({"id": i, "v": [i, i + 1]})
