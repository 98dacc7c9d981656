"""Configuration of mylab."""
