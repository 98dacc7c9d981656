"""Extra-P's answers, asked in an environment of its own by `benchmarks.accuracy`.

Reads questions as JSON, [counts, seconds, target] each, writes what it says and the median time.
Its argument is 1 where negative exponents are allowed, as Extra-P has them for strong scaling.
"""

import json
import statistics
import sys
import time
import warnings


def answer(counts: list[float], seconds: list[float], target: float, negative: bool) -> float:
    """Return the seconds of the model that Extra-P chooses."""
    from extrap.entities.callpath import Callpath
    from extrap.entities.coordinate import Coordinate
    from extrap.entities.experiment import Experiment
    from extrap.entities.measurement import Measurement
    from extrap.entities.metric import Metric
    from extrap.entities.parameter import Parameter
    from extrap.modelers.model_generator import ModelGenerator
    from extrap.modelers.single_parameter.basic import SingleParameterModeler

    experiment, path, metric = Experiment(), Callpath("all"), Metric("time")
    experiment.add_parameter(Parameter("p"))
    experiment.add_callpath(path)
    experiment.add_metric(metric)
    for count, time_there in zip(counts, seconds):  # noqa: B905 (any Python)
        coordinate = Coordinate(count)
        experiment.add_coordinate(coordinate)
        experiment.add_measurement(Measurement(coordinate, path, metric, [time_there]))
    modeler = SingleParameterModeler()
    if negative:
        modeler.allow_negative_exponents = True
    generator = ModelGenerator(experiment, modeler=modeler)
    generator.model_all()
    return float(generator.models[(path, metric)].hypothesis.function.evaluate(target))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found, spent = [], []
    for question in json.load(sys.stdin):
        begin = time.perf_counter()
        found.append(answer(*question, negative=sys.argv[1] == "1"))
        spent.append(time.perf_counter() - begin)
    json.dump({"seconds": found, "spent": statistics.median(spent)}, sys.stdout)
