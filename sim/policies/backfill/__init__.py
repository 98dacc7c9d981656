"""Backfilling rules: who may pass whom."""
