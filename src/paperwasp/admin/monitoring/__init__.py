"""Measurements while the service runs, and the forms in which monitoring reads them."""
