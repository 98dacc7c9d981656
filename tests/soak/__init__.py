"""Many random trials of what must never end in a traceback, a hang or a wrong byte."""
