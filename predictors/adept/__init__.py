"""ADEPT: from a few runs to a speedup curve that says how far to trust it.

After Deshmeh, Machina & Sodan, "ADEPT scalability predictor in support of
adaptive resource allocation". Downey's model is fitted anew for each target, by
an exact search; anomalies, steps, special counts and declining ends are found
first, and every prediction has a range and a reliability judgement.
"""
