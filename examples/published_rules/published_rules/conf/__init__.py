"""Configuration of published_rules."""
