"""The DispatchStart operator: one neutral request in, exactly one Kubeflow TrainJob out."""

__version__ = "0.1.0"
