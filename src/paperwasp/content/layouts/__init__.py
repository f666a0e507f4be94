"""The layout of stored documents by their schemas: their types, where each field goes, and documents as bytes.

configuration   the schemas, and the modes of document types, that a node was given
layout          the document types and their fields, as every record of the log means them
parts           columns for parts of arrays of structs and of maps
languages       the languages that a document sets for its fields
codec           documents as JSON: stored, logged, shown
selected        stored documents as selections and conditions see them
"""
