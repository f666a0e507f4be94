"""What queries are written with, in every language: tokens, literals, annotations and their places."""
