"""Families of shapes: how an application's runtime depends on its processors."""
