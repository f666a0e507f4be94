"""The documentation: its links, its examples, and what each page must have."""
