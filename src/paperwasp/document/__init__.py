"""The document model: types, ids, typed values, operations."""
