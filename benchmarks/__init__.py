"""Measurements of speed, memory and accuracy; regular, as old releases of pyarrow install one."""
