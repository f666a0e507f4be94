"""The limits of tensors and of ranking."""

from __future__ import annotations

from typing import Final

TENSOR_CELLS: Final = 1 << 26
"""The most cells of one tensor, cells of indexed dimensions that are not given included."""
FIELD_TENSOR_CELLS: Final = 1 << 22
"""The cells of all indexed dimensions of a field's tensor: a document with it, and a column, begin with no more."""
TENSOR_BATCH_CELLS: Final = 1 << 26
"""The most cells of the tensors of all hits that are computed at a time."""
TENSOR_FOLDED_CELLS: Final = 1 << 20
"""The cells of operands, multiplied, up to which a constant is computed with the profile, else with each query."""
TENSOR_FOLDING_CELLS: Final = 1 << 27
"""The same of all constants of one rank profile together: what computing them may take."""
TENSOR_FOLDED_TOGETHER_CELLS: Final = 1 << 22
"""The cells of all constants of one rank profile that are computed with it; others are with each query."""
TENSOR_DIMENSIONS: Final = 64
TENSOR_FILE_BYTES: Final = 1 << 28
"""The largest file of a constant, inflated."""
TENSOR_DIMENSION_SIZE: Final = 2**31 - 1

# Ranking
FOREST_FEATURE_CHARACTERS: Final = 1000
FOREST_FEATURES: Final = 10_000
"""Expressions that the splits of one xgboost or lightgbm model ask for."""
FOREST_FILE_BYTES: Final = 1 << 29
FOREST_NODES: Final = 4_000_000
UBJSON_DEPTH: Final = 50
UBJSON_VALUES: Final = 4_000_000
"""The most values of one file; an array of numbers of one type is one value."""
MODEL_EVALUATION_SECONDS: Final = 30
"""How long what the Model-evaluation API evaluates together may take."""
MODEL_EVALUATIONS_WAITING: Final = 1000
"""Requests of the Model-evaluation API that wait, or are evaluated, before others are refused."""
MODEL_FILE_BYTES: Final = 2**31 - 1
"""The largest file of a model: no more fits into a protocol buffer."""
MODEL_NAME_BYTES: Final = 1024
MODEL_VALUES: Final = 1000
"""Inputs and outputs of one model."""
ONNX_BATCH_CELLS: Final = 1 << 22
"""The most cells of all inputs of one run."""
ONNX_BATCH_HITS: Final = 128
ONNX_MEMORY_BYTES: Final = 4 << 30
"""What all runs of models in a process may take together, beside the weights."""
ONNX_MEMORY_SHARE: Final = 0.5
"""Of the machine's memory, or that of its control group, where that is less."""
ONNX_MEMORY_KEPT_SECONDS: Final = 1.0
"""What a run took is kept for the next ones; the first that ends so much later gives back what none uses."""
ONNX_PROBE_BYTES: Final = 2 << 30
"""The address space of the process that tries a model at a deployment, beside four times the file and what runs of
models may take: also loading a model computes what is constant in it."""
ONNX_PROBE_SECONDS: Final = 10
"""How long a deployment tries one model, and longer for what is read of a large file."""
ONNX_PROBE_BYTES_A_SECOND: Final = 20_000_000
"""Of the model's file, in the time beside that."""
ONNX_PROBES_KEPT: Final = 1000
RANK_ARGUMENT_CHARACTERS: Final = 10_000
"""The longest argument of a rank feature, with the arguments of functions put in their places."""
RANK_EXPRESSION_DEPTH: Final = 300
"""Nesting of one rank expression with the functions that it calls put in their places."""
FIELD_LENGTH: Final = 2**31 - 1
"""In words, where a rank property says one."""
FIELD_MATCH_SEGMENTATIONS: Final = 1_000_000
"""Alternative segmentations of one hit, by a rank property."""
FIELD_MATCH_OCCURRENCES: Final = 1_000_000_000
FIELD_MATCH_PROXIMITY: Final = 1000
"""Words between which proximity matters, by a rank property."""
LISTED_TERMS: Final = 100
"""Terms whose features are among the default rank features, by rank properties."""
BOOST_TABLE_VALUES: Final = 1 << 16
"""In one table of a native rank feature. A field may have several, and a schema many fields."""
QUERY_VECTOR_ITEMS: Final = 100_000
"""Numbers of a vector that a query brings as text, for a rank feature."""
PATH_POINTS: Final = 1_000
"""The most points of the path from which a query measures distances: each is compared with all positions of hits."""
EXPLAINED_DEPTH: Final = 60
"""Levels of the tree that explains the score of a hit: clients read JSON of a bounded depth."""
EXPLAINED_HITS: Final = 100
"""The most hits of one answer of a content cluster that have such a tree."""
EXPLAINED_NODES: Final = 1000
"""The most nodes of one tree."""
EXPLAINED_PLAN_NODES: Final = 10_000
"""The most nodes whose values are shown of one rank expression, with its functions put in their places."""
EXPLAINED_TENSOR_CELLS: Final = 32
EXPLAINED_TEXT_CHARACTERS: Final = 200
RANK_INFERENCE_NODES: Final = 500_000
"""The most nodes whose types are inferred for a rank profile, once for each call of a function with other arguments."""
RANK_TREES_CHARACTERS: Final = 1024 * 1024
"""All rank expressions whose trees are remembered."""
RANK_PROGRAM_OPERATIONS: Final = 1_000_000
"""The most nodes visited while one rank expression is compiled, once for each call of a function."""
