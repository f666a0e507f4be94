"""The models of a package's folder `models/`, evaluated outside of any search: functions of what a request gives.

    models.read_models     the files of a package → models by name, each with its functions
    binding.bound_values   the texts of a request → a value for each argument of a function
    Function.evaluate_all  values → tensors

Networks run in the sessions of `ranking.onnx.session`; trees and expressions are compiled by the compiler of ranking.

Vespa: https://docs.vespa.ai/en/ranking/stateless-model-evaluation.html
"""
