"""What is measured while the service runs, and the forms in which monitoring reads it."""
