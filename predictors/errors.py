"""Errors of the predictors package."""


class PredictorError(ValueError):
    """An observation, input or parameter that no model can use."""


class NotFittedError(PredictorError):
    """A model was asked before it was fitted."""


class UndeterminedError(PredictorError):
    """The observations do not determine what was asked (``strict=True``)."""
