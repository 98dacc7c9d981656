"""The command line ``python -m predictors``: reading measurements, answering, printing."""
