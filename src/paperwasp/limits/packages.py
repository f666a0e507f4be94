"""The limits of application packages, of deployments, and of what a package describes."""

from __future__ import annotations

from typing import Final

PACKAGE_FILES: Final = 10_000
PACKAGE_UNPACKED_BYTES: Final = 2 * 1024 * 1024 * 1024
PACKAGE_PATH_LENGTH: Final = 1024
PACKAGE_UNPACKED_FACTOR: Final = 200
"""How many times larger than its archive a package may be; a bomb is a thousand times larger and more."""
PACKAGE_UNPACKED_FREE_BYTES: Final = 64 * 1024 * 1024
"""Up to this size the factor does not matter."""
PACKAGE_PROBLEMS: Final = 50
"""Problems of one package that are reported; the rest are counted."""
OVERRIDE_DAYS: Final = 30
"""How far ahead an override of validation-overrides.xml may reach."""
SESSIONS: Final = 100
"""Inactive sessions kept of a tenant; when there are a tenth more, the oldest make room."""
TENANTS: Final = 100
TENANT_DEPLOYMENTS: Final = 16
"""Deployment steps of one tenant that run or wait; one more is answered with 429."""
APPLICATION_NAME_LENGTH: Final = 60
"""The longest name of a tenant, application or instance: together they are a key of the config store."""
DEPLOY_TIMEOUT_SECONDS: Final = 24 * 3600.0
"""The longest `timeout` of a deployment step that a request may have."""
DEPLOY_ANSWER_SECONDS: Final = 0.5
"""How much longer the answer waits for a step whose time is over to report the reason itself."""
CONVERGENCE_POLL_SECONDS: Final = 0.05
CONVERGENCE_SECONDS: Final = 1800.0
"""How long a deployment waits for the processes that serve to stage a generation, and again to serve it: columns of
many documents are filled meanwhile."""
CONFIG_RESYNC_SECONDS: Final = 5.0
"""How often whoever follows the config store looks at all that it follows, whether it was told of a change or not."""
SERVE_RETRY_FIRST_SECONDS: Final = 5.0
"""The pause before a process tries again to serve an active generation that it could not serve; it doubles."""
SERVE_RETRY_LONGEST_SECONDS: Final = 300.0
"""The longest of these pauses."""
MODELS_BUILT: Final = 4
"""Packages that are checked and built into applications at a time; other deployments wait, within their time."""
MODELS_KEPT: Final = 8
"""Built applications kept for the step after: a prepared package is not built again to be activated."""
PACKAGE_KEPT_BYTES: Final = 64 * 1024 * 1024
"""Unpacked packages up to this size are kept for the next request; of the models of larger ones only the last."""
PACKAGE_FILE_KEPT_BYTES: Final = 1024 * 1024
"""Files of a package up to this size stay in memory; larger ones lie on the disk of the data directory, without a name,
and are read when they are needed."""
PACKAGE_TEXT_BYTES: Final = 16 * 1024 * 1024
"""Of all schemas, rank profiles, expressions, rules and XML files of a package together: what is made of them takes a
hundred times as much."""
PREPARE_STEP_BYTES: Final = 256 * 1024 * 1024
"""The tensors of one step of preparing a package, such as one rank profile: a constant expression that needs more is
worked by queries, which have a bound of their own."""
CHECK_SECONDS: Final = 600.0
"""How long `paperwasp check` works on one package."""
MULTIPART_PARTS: Final = 16
MULTIPART_HEADER_BYTES: Final = 8 * 1024

SERVICE_LOG_FILE_BYTES: Final = 8 * 1024 * 1024
SERVICE_LOG_FILES: Final = 8
SERVICE_LOG_MESSAGE_LENGTH: Final = 16 * 1024
SERVICE_LOG_ANSWER_BYTES: Final = 32 * 1024 * 1024
"""The largest answer with log lines; the youngest are given."""
CONFIG_KEY_LENGTH: Final = 200
XML_BYTES: Final = 4 * 1024 * 1024
XML_DEPTH: Final = 64
QUERY_PROFILE_DEPTH: Final = 64
"""Levels of query profiles, or types, that inherit and refer to each other; and parts of a field's name."""
QUERY_PROFILE_VALUES: Final = 100_000
"""Values of one query profile with all that it refers to, in all its variants."""
QUERY_PROFILES_RESOLVED: Final = 1024
"""Variants of query profiles that are kept ready."""
SUBSTITUTED_VALUES: Final = 10_000
"""Values of query profiles that one request has put into others."""
XML_ELEMENTS: Final = 50_000
XML_ATTRIBUTES: Final = 100
"""The most attributes of one element."""
XML_INCLUDE_DEPTH: Final = 16
"""Files of a package that include each other."""
PACKAGE_FINDINGS: Final = 2_000
"""Errors and notes kept of one package; the rest are counted."""

# Semantic rules
RULE_BASES: Final = 1_000
RULE_STATEMENTS: Final = 100_000
"""Rules and named conditions of one rule base with all that it includes."""
RULE_BASE_DEPTH: Final = 32
"""Rule bases that include each other."""
RULE_DEPTH: Final = 50
"""Levels of parentheses in a condition, and of named conditions that refer to each other."""
RULE_STEPS: Final = 200_000
"""The steps of evaluating one query: conditions that are tried, and terms that are looked at or made."""
RULE_TRACE_MESSAGES: Final = 1_000
"""The most trace messages about the rules of one query."""
