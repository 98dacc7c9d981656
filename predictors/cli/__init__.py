"""The command line ``moldsim predict``: reading measurements, answering, printing."""
