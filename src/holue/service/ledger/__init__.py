"""The ledger: what a service keeps beside a gallery: keys, the audit log, reviews, strangers, answers to repeat."""

from holue.errors import MissingDependencyError

try:
    import sqlalchemy as sqlalchemy
except ImportError as error:
    raise MissingDependencyError("sqlalchemy", "serve") from error
